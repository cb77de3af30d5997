// The message of a fault, in parts.
#pragma once
#include <string>

#include "../include/machine.h"

namespace sim {

struct Words {
    const char* kind = "";
    std::string problem, expected, got, fix, parameter;
};
Words words_for_fault();

std::string format(uint3 v);                              // "(1, 0, 0)"

}  // namespace sim
