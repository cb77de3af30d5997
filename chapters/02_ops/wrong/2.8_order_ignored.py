# formulas.traced
def number(self, value, dtype):
    key = repr(value), dtype
    if key not in self.numbers:
        self.numbers[key] = self.new(Spec((), dtype))
        self.consts[self.numbers[key].slot] = value
    return self.numbers[key]


def inline(formula, slots, instrs, consts, count):
    known = {(name, operands): slot for name, slot, operands in instrs}
    for slot, value in formula.consts.items():
        slots[slot] = count
        consts[count] = value
        count += 1
    for name, out, operands in formula.instrs:
        call = name, tuple(sorted(slots[o] for o in operands))
        if call not in known:
            known[call] = count
            instrs.append((name, count, call[1]))
            count += 1
        slots[out] = known[call]
    return count
