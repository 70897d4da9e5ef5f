/* See symbols.h. Of ELF it knows what is the machine's own: 64 bits, this byte order. */
#include "os/symbols.h"

#include "os/file.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>

enum { PROGRAM_MOST = 1 << 30 };

struct function {
    uintptr_t start; /* from the program's beginning */
    uintptr_t size;
    const char *name; /* in `program` */
};

struct symbols {
    struct buffer program;      /* its file; empty: it cannot be read */
    uintptr_t base;             /* where it lies */
    struct function *functions; /* by `start` */
    size_t count;
};

/* --- the program's table --- */

/* `size` bytes of the file at the offset; NULL if it has not as many. */
static const void *part_of(const struct symbols *symbols, uint64_t offset, uint64_t size)
{
    if (offset > symbols->program.size || size > symbols->program.size - offset)
        return NULL;
    return symbols->program.data + offset;
}

static const Elf64_Shdr *section(const struct symbols *symbols, const Elf64_Ehdr *head,
                                 size_t index)
{
    const void *at =
        part_of(symbols, head->e_shoff + index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
    return index < head->e_shnum ? at : NULL;
}

static const Elf64_Shdr *find_table(const struct symbols *symbols, const Elf64_Ehdr *head)
{
    for (size_t i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *found = section(symbols, head, i);
        if (found != NULL && found->sh_type == SHT_SYMTAB)
            return found;
    }
    return NULL;
}

static int compare_starts(const void *a, const void *b)
{
    const struct function *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* Names that do not end in their section are left out. */
static void add(struct symbols *symbols, const Elf64_Sym *symbol, const char *names, uint64_t size)
{
    bool is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_size > 0;
    if (!is_function || symbol->st_name >= size ||
        memchr(names + symbol->st_name, 0, size - symbol->st_name) == NULL)
        return;
    symbols->functions[symbols->count++] = (struct function){
        .start = symbol->st_value, .size = symbol->st_size, .name = names + symbol->st_name};
}

static status read_table(struct symbols *symbols, const Elf64_Ehdr *head, const Elf64_Shdr *table)
{
    const Elf64_Shdr *strings = section(symbols, head, table->sh_link);
    const Elf64_Sym *list = part_of(symbols, table->sh_offset, table->sh_size);
    size_t count = table->sh_size / sizeof *list;
    if (strings == NULL || list == NULL)
        return status_ok();
    const char *names = part_of(symbols, strings->sh_offset, strings->sh_size);
    symbols->functions = calloc(count + 1, sizeof *symbols->functions);
    if (symbols->functions == NULL)
        return status_out_of_memory();
    for (size_t i = 0; names != NULL && i < count; i++)
        add(symbols, &list[i], names, strings->sh_size);
    if (symbols->count > 0)
        qsort(symbols->functions, symbols->count, sizeof *symbols->functions, compare_starts);
    return status_ok();
}

static status read_program(struct symbols *symbols)
{
    Dl_info info;
    status s = file_read("/proc/self/exe", PROGRAM_MOST, 0, &symbols->program);
    if (s.code == STATUS_RESOURCE_EXHAUSTED)
        return s;
    status_free(s);
    const Elf64_Ehdr *head = part_of(symbols, 0, sizeof *head);
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr))
        return status_ok();
    if (dladdr((void *)(uintptr_t)read_program, &info) == 0)
        return status_ok();
    symbols->base = head->e_type == ET_DYN ? (uintptr_t)info.dli_fbase : 0;
    const Elf64_Shdr *table = find_table(symbols, head);
    return table == NULL ? status_ok() : read_table(symbols, head, table);
}

status symbols_open(struct symbols **out)
{
    struct symbols *symbols = *out = calloc(1, sizeof *symbols);
    if (symbols == NULL)
        return status_out_of_memory();
    status s = read_program(symbols);
    if (!status_is_ok(s)) {
        symbols_close(symbols);
        *out = NULL;
    }
    return s;
}

void symbols_close(struct symbols *symbols)
{
    if (symbols == NULL)
        return;
    free(symbols->functions);
    buffer_free(&symbols->program);
    free(symbols);
}

/* --- names --- */

/* The function that the address is in; NULL if the table has none. */
static const struct function *find(const struct symbols *symbols, uintptr_t address)
{
    size_t low = 0, high = symbols->count;
    uintptr_t at = address - symbols->base;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->functions[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || at - symbols->functions[low - 1].start >= symbols->functions[low - 1].size)
        return NULL;
    return &symbols->functions[low - 1];
}

void *symbols_function(const struct symbols *symbols, void *address)
{
    Dl_info info;
    const struct function *function = find(symbols, (uintptr_t)address);
    if (function != NULL)
        return (void *)(symbols->base + function->start); /* NOLINT(performance-no-int-to-ptr) */
    return dladdr(address, &info) != 0 && info.dli_saddr != NULL ? info.dli_saddr : address;
}

static void append_word(struct buffer *out, const char *word)
{
    for (; *word != '\0'; word++)
        buffer_append_byte(out,
                           *word == ' ' || *word == ';' || *word == '\n' ? '_' : (uint8_t)*word);
}

void symbols_name(const struct symbols *symbols, const void *address, struct buffer *out)
{
    Dl_info info;
    const struct function *function = find(symbols, (uintptr_t)address);
    if (function != NULL) {
        append_word(out, function->name);
        return;
    }
    if (dladdr((void *)(uintptr_t)address, &info) == 0 || info.dli_fname == NULL) {
        buffer_append_format(out, "%p", address);
        return;
    }
    if (info.dli_sname != NULL) {
        append_word(out, info.dli_sname);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    append_word(out, slash == NULL ? info.dli_fname : slash + 1);
    buffer_append_format(out, "+0x%zx", (size_t)((uintptr_t)address - (uintptr_t)info.dli_fbase));
}
