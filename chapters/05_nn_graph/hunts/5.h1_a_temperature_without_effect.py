import numpy as np

import flowedu as flow
from flowedu import nn

settings = {"temperature": 1.0}
builds = []                                 # an element for each run of build


class Choose(nn.Graph):
    def build(self, x):
        builds.append(1)
        return flow.softmax(x / settings["temperature"], 1)


def anneal(x, temperatures):
    """Return the softmax of x / t for each temperature t, and the number of runs of build."""
    builds.clear()
    x, choose, results = flow.tensor(x), Choose(), []
    for temperature in temperatures:
        settings["temperature"] = temperature
        results.append(choose(x).numpy())
    return results, len(builds)


if __name__ == "__main__":
    results, count = anneal(np.array([[0.0, 1.0, 2.0]], np.float32), (1.0, 0.5, 0.1))
    print(*(y.round(3) for y in results), f"build ran {count} times; expected: once", sep="\n")
