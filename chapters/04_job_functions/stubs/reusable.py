def reusable(self, node, places, names, number):
    return None
