"""Exercises of chapter 4. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/04_job_functions
"""


def momentum_steps(gradients, rates, momentum=0.9):
    """The values of a weight that starts at 0, after each step of flow.optimizer.SGD: a list of floats.

    gradients: for each step the list of gradients, one per element of the loss. rates: for each step the learning rate.
    The rules are in the lesson: mean gradient; the rate is part of m.
    """
    raise NotImplementedError("your turn")


def lifetimes(calls, outputs):
    """When must the memory of each result be kept? {name: (first, last)}, both step numbers.

    calls: a list of (result, [names it reads]), in order. A name that no call makes is an input: it is not in the answer.
    A result lives from the call that writes it to the last call that reads it; one that nobody reads, for its own call
    only. outputs: names that are fetched after the last call, that is, at step len(calls).
    """
    raise NotImplementedError("your turn")


def most_alive(sizes, lives):
    """The most bytes alive at one step: no arena can be smaller.

    sizes: {name: bytes}. lives: {name: (first, last)}, as lifetimes returns them.
    """
    raise NotImplementedError("your turn")


def place(sizes, lives):
    """An offset for every result, so that two that live at the same step never overlap: {name: offset}.

    Try this: largest first, each at the lowest offset where it meets nobody it lives together with. flowedu's own plans
    are made that way. Do better if you can: the checks compare the size of your arena with what that rule needs.
    """
    raise NotImplementedError("your turn")


def fused(calls, elementwise, outputs):
    """Which calls become one kernel? A list of lists of results, in the order of their last members.

    calls: a list of (result, [names it reads]), in order. elementwise: the set of results of elementwise ops (all of one
    shape here). outputs: names that are fetched. A result joins the kernel of its reader when both are elementwise, it
    has just that one reader, and it is not fetched. Within a kernel, keep the order of `calls`. Every call is in one list.
    """
    raise NotImplementedError("your turn")


def spiral_jobs(batch):
    """Two jobs over points in the plane, float32 of shape (batch, 2), that lie on one of two spirals.

    Return (train, read): train(points, labels) takes one step and returns the losses, one per point (labels are int32 of
    shape (batch,), 0 or 1); read(points) returns the logits (batch, 2). They must share all their weights. The check
    trains with 1,500 calls on one batch and wants 95 % of the points right. Two hidden layers of 32 are enough. Dense
    layers start at zero unless you give them a kernel_initializer.
    """
    raise NotImplementedError("your turn")


# ---- the second lesson: devices.md
def replay(calls, known):
    """Follow the recipe of a job: {value: what it became}, the given ones included.

    calls: job.context.calls. Each has f, a function; args, a tuple; kwargs, a dict; results, a tuple of values. Call f in
    order. In its arguments there are values (instances of flowedu.core.graph.ir.GraphValue), also inside lists and
    tuples, and constants, which stay as they are. known: {value: tensor} for the arguments of the job; leave it as it is.
    f returns one tensor where there is one result, and a list or tuple of them where there are several.
    """
    raise NotImplementedError("your turn")


def local_shapes(shape, layout, k):
    """The shapes of what each of k devices has of a value: a list of k tuples.

    layout: "B" (all of it), "P" (a part of the sum), "S0", "S1" ... (a part along that axis). Parts are balanced: where k
    does not divide the axis, the first devices have one more. None where the layout is impossible: there is no such axis,
    or some device would get nothing.
    """
    raise NotImplementedError("your turn")


def bytes_moved(shape, source, target, k):
    """The bytes sent between k devices to bring a float32 value of this shape from one layout to another: an int.

    Layouts are those of local_shapes, all possible ones here. Nobody sends what the other one has already. A device can
    get from all of a value (B) to anything, and from a part (S) to a part of a sum (P: zeros elsewhere), by itself. A sum
    that shall be in parts: every device collects the pieces of its part from the others. A sum that shall be whole: after
    that, it hands its part to all others.
    """
    raise NotImplementedError("your turn")
