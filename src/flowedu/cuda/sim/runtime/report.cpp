// The report of a fault: source lines, and the messages of words.cpp, as rows for programs and as text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sstream>

#include "block.h"
#include "fault.h"
#include "launch.h"
#include "memory.h"
#include "shell.h"
#include "words.h"

namespace sim {

namespace {

std::string rows, text;
std::map<std::pair<const Image*, uintptr_t>, int> lines;        // cache of line numbers

std::string write_image(const Image& image) {
    const char* t = getenv("TMPDIR");
    std::string path = std::string(t && *t ? t : "/tmp") + "/flowedu-cuda-XXXXXX";
    int fd = mkstemp(path.data());
    if (fd < 0) return "";
    bool good = write(fd, image.bytes.data(), image.bytes.size()) == (ssize_t)image.bytes.size();
    close(fd);
    return good ? path : "";
}

// Runs addr2line, a part of binutils. Its output starts with the innermost function, so the first line of
// kernel.cu is used.
int ask_for_line(const Image& image, uintptr_t offset) {
    std::string path = write_image(image);
    if (path.empty()) return 0;
    char output[1024], address[32];
    snprintf(address, sizeof address, " 0x%zx", (size_t)offset);
    std::string command = "addr2line -i -e " + quoted(path) + address + " 2>/dev/null";
    int line = 0;
    if (FILE* p = popen(command.c_str(), "r")) {
        while (fgets(output, sizeof output, p)) {
            const char* at = strstr(output, "kernel.cu:");
            if (at && !line) line = atoi(at + 10);
        }
        pclose(p);
    }
    unlink(path.c_str());
    return line;
}

// Returns the text of a line of kernel.cu. #line directives set the line number and the file.
std::string source_line(const Module& module, int wanted) {
    std::istringstream all(module.source);
    std::string line, source;
    bool in_kernel_file = true;
    for (int number = 1; std::getline(all, line); ++number) {
        if (line.rfind("#line ", 0) == 0) {
            number = atoi(line.c_str() + 6) - 1;
            in_kernel_file = line.find("\"kernel.cu\"") != std::string::npos;
        } else if (in_kernel_file && number == wanted) {
            source = line;
        }
    }
    size_t from = source.find_first_not_of(" \t"), to = source.find_last_not_of(" \t\r");
    return from == std::string::npos ? "" : source.substr(from, to - from + 1);
}

std::string place(int line) {
    if (!line) return "";
    std::string words = source_line(*launch->kernel->module, line);
    return "kernel.cu:" + std::to_string(line) + (words.empty() ? "" : ": " + words);
}

std::string bare(uint3 v) { return std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z); }

void row(const char* name, std::string value) {
    if (value.empty()) return;
    for (char& c : value)
        if (c == '\n' || c == '\t') c = ' ';
    rows += std::string(name) + "\t" + value + "\n";
}

}  // namespace

int line_of(const Image& image, const void* at) {
    if (!at || (uintptr_t)at < image.begin || (uintptr_t)at > image.end) return 0;
    auto [it, fresh] = lines.try_emplace({&image, (uintptr_t)at - image.begin - 1}, 0);
    if (fresh) it->second = ask_for_line(image, it->first.second);
    return it->second;
}

void forget_lines(const Image& image) {
    for (auto it = lines.begin(); it != lines.end();) it = it->first.first == &image ? lines.erase(it) : std::next(it);
}

// Called after the launch, with `launch`, `block` and `here` unchanged.
void compose_report() {
    here = &block.threads[fault.thread];
    Words w = words_for_fault();
    int line = line_of(*launch->image, fault.at), other = line_of(*launch->image, (const void*)fault.other_at);
    std::string where = place(line), also = other != line ? place(other) : "";
    bool pair = fault.kind == RACE || fault.kind == DIVERGED ||
                (fault.kind == LANES_MISSING && fault.other_thread != fault.thread);
    rows.clear();
    row("kind", w.kind);
    row("kernel", launch->entry->name);
    row("problem", w.problem);
    row("at", where);
    row("line", line ? std::to_string(line) : "");
    row("source", source_line(*launch->kernel->module, line));
    row("block", bare(cudasim_here.block));
    row("thread", bare(here->id));
    if (pair) row("other_thread", bare(block.threads[fault.other_thread].id));
    row("other_line", other ? std::to_string(other) : "");
    row("parameter", w.parameter);
    row("expected", w.expected);
    row("got", w.got + (also.empty() || w.got.empty() ? "" : "; ") + (also.empty() ? "" : "the other at " + also));
    row("fix", w.fix);
    const std::pair<const char*, std::string> parts[] = {{"at", where}, {"the other at", also}, {"expected", w.expected},
                                                         {"got", w.got}, {"fix", w.fix}};
    text = w.problem;
    for (auto& [name, value] : parts)
        if (!value.empty()) text += std::string("\n  ") + name + ": " + value;
}

const std::string& report_rows() { return rows; }
const std::string& report_text() { return text; }

}  // namespace sim

extern "C" __attribute__((visibility("default"))) const char* cudasim_report() { return sim::report_rows().c_str(); }
