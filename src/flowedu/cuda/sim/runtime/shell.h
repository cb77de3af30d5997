// Words of a command line for popen.
#pragma once
#include <string>

namespace sim {

// `text` as one word, whatever characters a path has.
inline std::string quoted(const std::string& text) {
    std::string word = "'";
    for (char c : text) {
        if (c == '\'') word += "'\\''";
        else word += c;
    }
    return word + "'";
}

}  // namespace sim
