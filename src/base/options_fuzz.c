/* Fuzzer: settings. A value means the same as a flag, as a variable and in a file; any text is a
 * file that is read or refused in one line, which says where.
 *
 * Input: choices (base/testing/fuzzing.h): a row of the table and a value for it; the rest is the
 * file. */
#include "base/options.h"
#include "base/testing/fuzzing.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct object {
    const char *config;
    const char *word;
    uint64_t size;
    uint64_t number;
    int64_t time;
    bool flag;
    int choice;
};

#define ROW(member, kind, preset, unit)                                                            \
    {                                                                                              \
#member, kind, offsetof(struct object, member), preset, 1, 1 << 30, unit, "A sentence."    \
    }

static const struct option rows[] = {
    ROW(config, OPTION_STRING, NULL, "FILE"),   ROW(word, OPTION_STRING, "w", "WORD"),
    ROW(size, OPTION_SIZE, "1KB", ""),          ROW(number, OPTION_INTEGER, "2", ""),
    ROW(time, OPTION_DURATION, "3ms", ""),      ROW(flag, OPTION_BOOLEAN, "false", ""),
    ROW(choice, OPTION_ENUM, "one", "one|two"),
};

enum { ROWS = sizeof rows / sizeof *rows, MOST_VALUE = 40, TEXT_SIZE = 64 };

static const struct option_table table = {.rows = rows,
                                          .count = ROWS,
                                          .command = "fuzz",
                                          .environment_prefix = "FUZZ_",
                                          .config_member = "config"};

/* The object that was read, and whether it was refused. */
struct reading {
    struct object object;
    struct option_origin origins[ROWS];
    struct option_values values;
    status status;
};

static void read_settings(const char *const *arguments, const char *const *environment,
                          struct reading *out)
{
    *out = (struct reading){.status = status_ok()};
    out->values.object = &out->object;
    out->values.origins = out->origins;
    out->status = options_read(&table, arguments, environment, &out->values);
    CHECK(status_is_ok(out->status) || out->status.code == STATUS_INVALID_ARGUMENT);
    CHECK(status_is_ok(out->status) || status_message(out->status)[0] != '\0');
}

static void end_reading(struct reading *reading)
{
    status_free(reading->status);
    buffer_free(&reading->values.file);
}

static void read_flag(const char *text, struct reading *out)
{
    read_settings((const char *const[]){text, NULL}, (const char *const[]){NULL}, out);
}

/* Through a file that only this process sees. */
static void read_file(bytes text, struct reading *out)
{
    char flag[TEXT_SIZE];
    int file = memfd_create("options", MFD_CLOEXEC);
    CHECK(file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size);
    snprintf(flag, sizeof flag, "--config=/proc/self/fd/%d", file);
    read_flag(flag, out);
    close(file);
}

/* Whether the object is what it is without any setting except `config`. */
static bool is_preset(const struct object *object)
{
    return strcmp(object->word, "w") == 0 && object->size == 1024 && object->number == 2 &&
           object->time == 3000 && !object->flag && object->choice == 0;
}

static void check_same(const struct reading *a, const struct reading *b)
{
    CHECK(status_is_ok(a->status) == status_is_ok(b->status));
    if (!status_is_ok(a->status))
        return;
    CHECK(strcmp(a->object.word, b->object.word) == 0 && a->object.size == b->object.size);
    CHECK(a->object.number == b->object.number && a->object.time == b->object.time);
    CHECK(a->object.flag == b->object.flag && a->object.choice == b->object.choice);
}

/* Whether a line of a file can say it: without what ends, begins or surrounds a value there. */
static bool fits_in_file(const char *value)
{
    for (const char *at = value; *at != '\0'; at++)
        if (isspace((unsigned char)*at) || *at == '#')
            return false;
    return true;
}

static void check_sources(const struct option *option, const char *value)
{
    char flag[TEXT_SIZE], variable[TEXT_SIZE], line[TEXT_SIZE];
    struct reading by_flag, by_variable, by_file;
    snprintf(flag, sizeof flag, "--%s=%s", option->member, value);
    snprintf(variable, sizeof variable, "FUZZ_%s=%s", option->member, value);
    snprintf(line, sizeof line, "\t%s =%s # it", option->member, value);
    read_flag(flag, &by_flag);
    read_settings((const char *const[]){NULL}, (const char *const[]){variable, NULL}, &by_variable);
    check_same(&by_flag, &by_variable);
    if (fits_in_file(value)) {
        read_file(bytes_of(line), &by_file);
        check_same(&by_flag, &by_file);
        end_reading(&by_file);
    }
    end_reading(&by_flag);
    end_reading(&by_variable);
}

static void check_file(bytes text)
{
    struct reading reading;
    read_file(text, &reading);
    if (!status_is_ok(reading.status))
        CHECK(strncmp(status_message(reading.status), "/proc/self/fd/", 14) == 0);
    if (!status_is_ok(reading.status))
        CHECK(strchr(status_message(reading.status), '\n') == NULL);
    CHECK(text.size > 0 || is_preset(&reading.object));
    end_reading(&reading);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    const struct option *option = &rows[1 + choose(&choices, ROWS - 1)];
    bytes chosen = choose_bytes(&choices, MOST_VALUE);
    char value[MOST_VALUE + 1];
    snprintf(value, sizeof value, "%.*s", (int)chosen.size,
             chosen.size == 0 ? "" : (const char *)chosen.data);
    check_sources(option, value);
    check_file(choices.left);
    return 0;
}
