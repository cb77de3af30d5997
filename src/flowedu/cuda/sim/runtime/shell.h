// Quoting of arguments for popen.
#pragma once
#include <string>

namespace sim {

// Returns `text` as one shell word.
inline std::string quoted(const std::string& text) {
    std::string word = "'";
    for (char c : text) {
        if (c == '\'') word += "'\\''";
        else word += c;
    }
    return word + "'";
}

}  // namespace sim
