def number(self, value, dtype):
    for (text, kind), symbol in self.numbers.items():
        if text == repr(value) and kind == dtype:
            return symbol
    symbol = self.numbers[repr(value), dtype] = self.new(Spec((), dtype))
    self.consts[symbol.slot] = value
    return symbol


def inline(formula, slots, instrs, consts, count):
    there = {repr(value): slot for slot, value in consts.items()}
    made = {(name, operands): out for name, out, operands in instrs}
    for slot, value in formula.consts.items():
        if repr(value) not in there:
            there[repr(value)] = count
            consts[count] = value
            count += 1
        slots[slot] = there[repr(value)]
    for name, out, operands in formula.instrs:
        mine = tuple(slots[o] for o in operands)
        if (name, mine) not in made:
            made[name, mine] = count
            instrs.append((name, count, mine))
            count += 1
        slots[out] = made[name, mine]
    return count
