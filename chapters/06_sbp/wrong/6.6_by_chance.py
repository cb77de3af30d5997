# signatures.again
import random


def _fewest_bytes(c, asked):
    return c.bytes, random.random()
