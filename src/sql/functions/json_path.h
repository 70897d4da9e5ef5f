/* JSONPath, as much of it as GoogleSQL takes: `$`, `.name`, `[n]`, and names in quotes:
 * `."a.b"`, or `['a.b']` in the functions that are older. */
#ifndef TRESTLE_SQL_FUNCTIONS_JSON_PATH_H
#define TRESTLE_SQL_FUNCTIONS_JSON_PATH_H

#include "base/arena.h"
#include "base/status.h"
#include "wire/json_text.h"

enum { JSON_DEPTH = 1000 }; /* levels of a text that is looked into */

enum json_path_form { JSON_PATH_STANDARD, JSON_PATH_LEGACY };

/* A member's name, or an element's index. */
struct json_step {
    bytes name;
    bool is_index;
    uint64_t index;
};

struct json_path {
    struct json_step *steps;
    size_t count;
};

/* Reads a path, into the arena; `text` must live as long. OUT_OF_RANGE for what is no path. */
status json_path_read(bytes text, enum json_path_form form, struct arena *arena,
                      struct json_path *out);

/* Moves to the value at the path, the first of its name; false: there is none. The text is valid
 * JSON (json_skip). */
bool json_path_find(const struct json_path *path, struct json_reader *reader);

#endif
