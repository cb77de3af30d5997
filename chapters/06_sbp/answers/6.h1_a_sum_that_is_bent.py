"""bend is not linear, because bend(1) + bend(1) is not bend(2).

With linear=["x"], the record claims that bend may be applied to each part of a partial sum. flow.explain
shows the signature x=P -> y=P. Without it, the sum is completed first.

A conversion of a @ b to B before the call is right, too. But then every other caller of bend needs one.
"""
import numpy as np

import flowedu as flow
from flowedu.core.ops.record import Split

flow.distributed.set_virtual_devices(4)
flow.ops.REGISTRY.pop("bend", None)                     # of an earlier run in this process
bend = flow.ops.define_elementwise("bend(x) -> y", Split(linear=[]),
                                   formula=lambda x: x * 2 + flow.math.square(x))


def layer(a, b, devices):
    """Return bend(a @ b). Each device has some columns of a, and the rows of b with the same numbers."""
    where = flow.placement("cpu", list(range(devices)))
    a = flow.tensor(a, placement=where, sbp=flow.sbp.split(1))
    b = flow.tensor(b, placement=where, sbp=flow.sbp.split(0))
    return bend(a @ b).numpy()


if __name__ == "__main__":
    a, b = np.ones((1, 4), np.float32), np.ones((4, 1), np.float32)
    for devices in (1, 2, 4):
        print(f"{devices} devices: {layer(a, b, devices)}; expected: [[24.]]")
