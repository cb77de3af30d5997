// Modules: shared objects made by g++ from a CUDA source, their kernels and variables.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "api.h"
#include "launch.h"
#include "memory.h"
#include "setting.h"
#include "shell.h"

namespace sim {

namespace {

std::set<Image*> images;

std::string folder() {
    const char* t = getenv("TMPDIR");
    return t && *t ? t : "/tmp";
}

std::string write_file(const std::string& bytes, const char* suffix) {      // "" after an error
    std::string path = folder() + "/flowedu-cuda-XXXXXX" + suffix;
    int fd = mkstemps(path.data(), strlen(suffix));
    if (fd < 0) return "";
    size_t done = 0;
    while (done < bytes.size()) {
        ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
        if (n <= 0) break;
        done += n;
    }
    close(fd);
    if (done == bytes.size()) return path;
    unlink(path.c_str());
    return "";
}

// "_ZZ5tiledE2As" is `As` of the function `tiled`: static variables of functions are shared memory.
std::string local_name(const std::string& symbol) {
    size_t e = symbol.rfind('E');
    while (e != std::string::npos && e + 1 < symbol.size() && !isdigit(symbol[e + 1])) e = e ? symbol.rfind('E', e - 1) : e;
    if (e == std::string::npos || e + 1 >= symbol.size()) return symbol;
    char* name;
    size_t n = strtoul(symbol.c_str() + e + 1, &name, 10);
    return std::string(name).substr(0, n);
}

// Reads the symbol table of the file: functions, and variables in writable memory.
void read_symbols(Image& image, uintptr_t base) {
    const char* file = image.bytes.data();
    auto* head = (const Elf64_Ehdr*)file;
    auto* sections = (const Elf64_Shdr*)(file + head->e_shoff);
    const char* section_names = file + sections[head->e_shstrndx].sh_offset;
    for (int i = 0; i < head->e_shnum; ++i) {
        if (!strncmp(section_names + sections[i].sh_name, ".plt", 4)) {
            image.stubs = std::min(image.stubs, base + sections[i].sh_addr);
            image.stubs_end = std::max(image.stubs_end, base + sections[i].sh_addr + sections[i].sh_size);
        }
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        auto* symbols = (const Elf64_Sym*)(file + sections[i].sh_offset);
        const char* names = file + sections[sections[i].sh_link].sh_offset;
        for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
            auto& y = symbols[s];
            std::string name = names + y.st_name;
            if (!y.st_shndx || y.st_shndx >= SHN_LORESERVE) continue;
            auto& home = sections[y.st_shndx];
            if (ELF64_ST_TYPE(y.st_info) == STT_FUNC) image.functions[base + y.st_value] = name;
            bool object = ELF64_ST_TYPE(y.st_info) == STT_OBJECT || ELF64_ST_TYPE(y.st_info) == STT_GNU_IFUNC;
            if (!object || !(home.sh_flags & SHF_WRITE) || name.find("cudasim_") != std::string::npos) continue;
            bool constant = !strcmp(section_names + home.sh_name, "cudasim_constant");
            bool shared = name.rfind("_ZZ", 0) == 0;
            std::string variable = shared ? local_name(name) : name;
            size_t tail = variable.size() + std::to_string(variable.size()).size() + 1;
            image.variables.push_back({variable, shared ? name.substr(3, name.size() - 3 - tail) : "", base + y.st_value, y.st_size,
                                       constant ? Variable::CONSTANT : shared ? Variable::SHARED : Variable::GLOBAL});
        }
    }
}

const char* text_of(const Image& image, const char* symbol) {
    auto* p = (const char*)dlsym(image.handle, symbol);
    return p ? p : "";
}

void read_kernels(Module& module, Image& image) {
    auto* table = (const cudasim_kernel*)dlsym(image.handle, "cudasim_kernels");
    auto* count = (const unsigned*)dlsym(image.handle, "cudasim_kernel_count");
    for (unsigned i = 0; table && count && i < *count; ++i) {
        std::string symbol = image.functions[(uintptr_t)table[i].function];
        Kernel& k = module.kernels[symbol];
        k.module = &module;
        k.symbol = symbol;
        (image.checked ? k.checked : k.plain) = &table[i];
    }
}

bool add(Module& module, std::string bytes, std::string& problem) {
    Image loaded;
    if (!load(loaded, std::move(bytes), problem)) return false;
    Image& image = loaded.checked ? module.checked : module.plain;
    image = std::move(loaded);
    images.insert(&image);
    module.source = text_of(image, "cudasim_source");
    module.options = text_of(image, "cudasim_options");
    read_kernels(module, image);
    return true;
}

}  // namespace

bool load(Image& image, std::string bytes, std::string& problem) {
    image.bytes = std::move(bytes);
    std::string path = write_file(image.bytes, ".so");
    if (path.empty()) return problem = "no file can be written to " + folder(), false;
    image.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!image.handle) problem = dlerror();
    unlink(path.c_str());
    if (!image.handle) return false;
    link_map* map;
    dlinfo(image.handle, RTLD_DI_LINKMAP, &map);
    auto* head = (const Elf64_Ehdr*)image.bytes.data();
    auto* parts = (const Elf64_Phdr*)(image.bytes.data() + head->e_phoff);
    image.begin = map->l_addr;
    for (int i = 0; i < head->e_phnum; ++i)
        if (parts[i].p_type == PT_LOAD) image.end = map->l_addr + parts[i].p_vaddr + parts[i].p_memsz;
    image.checked = !strcmp(text_of(image, "cudasim_variant"), "checked");
    read_symbols(image, map->l_addr);
    return true;
}

size_t Kernel::static_shared() const {
    std::string function = symbol.rfind("_Z", 0) == 0 ? symbol.substr(2) : std::to_string(symbol.size()) + symbol;
    size_t bytes = 0;
    for (auto& v : module->any().variables) bytes += v.where == Variable::SHARED && v.owner == function ? v.size : 0;
    return bytes;
}

Image* image_at(uintptr_t a) {
    for (Image* image : images)
        if (a >= image->begin && a < image->end) return image;
    return nullptr;
}

// Compiles the module's source again, with hooks, by the same compiler.
bool make_checked(Module& module, std::string& problem) {
    if (module.checked.handle) return true;
    Dl_info self;
    dladdr((void*)make_checked, &self);
    std::string nvcc = self.dli_fname, source = write_file(module.source, ".cu"), result = source + ".so";
    nvcc = nvcc.substr(0, nvcc.rfind('/')) + "/bin/nvcc";
    if (source.empty()) return problem = "no file can be written to " + folder(), false;
    bool shown = isatty(2);                             // progress is shown in the terminal
    std::string command = quoted(nvcc) + " --checked --cubin " + module.options + " -o " + quoted(result) + " " +
        quoted(source) + " ";
    command = shown ? "FLOWEDU_CUDA_TERMINAL=3 " + command + "3>&2 2>&1" : command + "2>&1";
    std::string output, bytes;
    char piece[4096];
    FILE* p = popen(command.c_str(), "r");
    for (size_t n; p && (n = fread(piece, 1, sizeof piece, p)) > 0;) output.append(piece, n);
    int status = p ? pclose(p) : -1;
    if (FILE* f = fopen(result.c_str(), "rb")) {
        for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) bytes.append(piece, n);
        fclose(f);
    }
    unlink(source.c_str());
    unlink(result.c_str());
    if (status || bytes.empty()) return problem = "the variant with checks could not be compiled: " + output, false;
    return add(module, std::move(bytes), problem);
}

void carry_globals(const Image& from, const Image& to) {
    for (auto& v : from.variables)
        for (auto& w : to.variables)
            if (v.where != Variable::SHARED && v.name == w.name && v.size == w.size)
                memcpy((void*)w.address, (void*)v.address, v.size);
}

}  // namespace sim

using namespace sim;

API cuModuleLoadData(CUmodule* m, const void* data) {
    ONE_AT_A_TIME;
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    auto* head = (const Elf64_Ehdr*)data;
    if (memcmp(head, ELFMAG, SELFMAG) || head->e_machine == 190 /* EM_CUDA */)
        return error(CUDA_ERROR_NO_BINARY_FOR_GPU, "this module was compiled for a GPU, and the simulator is none: compile "
                                                   "it while FLOWEDU_CUDA=sim");
    auto* module = new Module;
    std::string problem;
    if (!add(*module, std::string((const char*)data, head->e_shoff + (size_t)head->e_shnum * head->e_shentsize), problem)) {
        delete module;
        return error(CUDA_ERROR_INVALID_IMAGE, problem);
    }
    return *m = (CUmodule)module, CUDA_SUCCESS;
}
API cuModuleLoadDataEx(CUmodule* m, const void* data, unsigned, CUjit_option*, void**) { return cuModuleLoadData(m, data); }
API cuModuleLoadFatBinary(CUmodule* m, const void* data) { return cuModuleLoadData(m, data); }
API cuModuleLoad(CUmodule* m, const char* path) {
    FILE* f = fopen(path, "rb");
    if (!f) return error(CUDA_ERROR_FILE_NOT_FOUND, std::string("there is no file ") + path);
    std::string bytes;
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) bytes.append(piece, n);
    fclose(f);
    if (bytes.size() < sizeof(Elf64_Ehdr)) return error(CUDA_ERROR_INVALID_IMAGE, std::string(path) + " is no module");
    return cuModuleLoadData(m, bytes.data());
}
API cuModuleUnload(CUmodule m) {
    ONE_AT_A_TIME;
    auto* module = (Module*)m;
    for (Image* image : {&module->plain, &module->checked})
        if (image->handle) {
            images.erase(image);
            unwatch(*image);
            dlclose(image->handle);
        }
    return delete module, CUDA_SUCCESS;
}
API cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
    auto& kernels = ((Module*)m)->kernels;
    auto it = kernels.find(name);
    if (it == kernels.end())                            // also accept the name in the source
        for (it = kernels.begin(); it != kernels.end() && it->second.entry().name != std::string(name);) ++it;
    if (it == kernels.end()) {
        std::string names;
        for (auto& k : kernels) names += (names.empty() ? "" : ", ") + k.first;
        return error(CUDA_ERROR_NOT_FOUND, std::string("there is no kernel ") + name + " in this module; it has " + names);
    }
    return *f = (CUfunction)&it->second, CUDA_SUCCESS;
}
API cuModuleGetGlobal(CUdeviceptr* p, size_t* n, CUmodule m, const char* name) {
    for (auto& v : ((Module*)m)->any().variables)
        if (v.where != Variable::SHARED && v.name == name) {
            if (p) *p = v.address;
            if (n) *n = v.size;
            return CUDA_SUCCESS;
        }
    return error(CUDA_ERROR_NOT_FOUND, std::string("there is no __device__ or __constant__ variable ") + name);
}
