# letters.linear
def add():
    return [("x", "y")]


def mul():
    return ["x", "y"]


def div():
    return ["x", "y"]


def where():
    return [("x", "y")]


def relu():
    return []
