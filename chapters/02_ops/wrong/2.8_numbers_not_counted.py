# formulas.traced
def number(self, value, dtype):
    out = self.new(Spec((), dtype))
    self.consts[out.slot] = value
    return out


def inline(formula, slots, instrs, consts, count):
    begin = count
    for slot, value in formula.consts.items():
        slots[slot] = count
        consts[count] = value
        count += 1
    for name, out, operands in formula.instrs:
        slots[out] = count
        instrs.append((name, count, tuple([slots[o] for o in operands])))
        count += 1
    return begin + len(formula.instrs)
