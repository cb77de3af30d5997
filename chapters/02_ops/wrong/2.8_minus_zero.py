# formulas.traced
def number(self, value, dtype):
    if (value, dtype) not in self.numbers:
        out = self.numbers[value, dtype] = self.new(Spec((), dtype))
        self.consts[out.slot] = value
    return self.numbers[value, dtype]


def inline(formula, slots, instrs, consts, count):
    known = {(name, operands): slot for name, slot, operands in instrs}
    for slot, value in formula.consts.items():
        slots[slot] = count
        consts[count] = value
        count += 1
    for name, out, operands in formula.instrs:
        call = name, tuple([slots[o] for o in operands])
        if call not in known:
            known[call] = count
            instrs.append((name, count, call[1]))
            count += 1
        slots[out] = known[call]
    return count
