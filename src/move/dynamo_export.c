/* See dynamo_export.h. */
#include "move/dynamo_export.h"

#include "move/input.h"
#include "sql/vector.h"
#include "wire/json.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAMAGED(...) status_make(STATUS_DATA_LOSS, __VA_ARGS__)

struct opening {
    const char *source;
    struct arena *arena;
    struct dynamo_export *out;
    struct vector files; /* of struct dynamo_file */
};

static const char *join(struct arena *arena, const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + sizeof "/";
    char *path = arena_alloc(arena, size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

static bool is_there(const char *path)
{
    return path != NULL && access(path, F_OK) == 0;
}

/* --- files --- */

/* Takes the file as one of the export. Its path is the arena's, or lives as long. */
static status add_file(struct opening *opening, struct dynamo_file file)
{
    if (file.path == NULL)
        return status_out_of_memory();
    const char *slash = strrchr(file.path, '/');
    const char *name = slash == NULL ? file.path : slash + 1;
    file.format = strstr(name, ".ion") != NULL ? DYNAMO_ION : DYNAMO_JSON;
    TRY(vector_add(&opening->files, opening->arena, &file, sizeof file));
    opening->out->files = opening->files.items;
    opening->out->count = opening->files.count;
    return status_ok();
}

/* --- directories without a manifest --- */

static bool is_data_file(const char *name)
{
    static const char *const ends[] = {".json.gz", ".json", ".ion.gz", ".ion"};
    size_t size = strlen(name);
    if (name[0] == '.' || strncmp(name, "manifest", strlen("manifest")) == 0)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (size > end && strcmp(name + size - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static int compare_paths(const void *a, const void *b)
{
    const struct dynamo_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static status add_entries(struct opening *opening, const char *directory, DIR *stream)
{
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (is_data_file(entry->d_name))
            TRY(add_file(opening, (struct dynamo_file){
                                      .path = join(opening->arena, directory, entry->d_name)}));
    if (opening->out->count == 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s has neither a manifest nor files *.json, *.json.gz, *.ion, *.ion.gz",
                           opening->source);
    qsort(opening->out->files, opening->out->count, sizeof *opening->out->files, compare_paths);
    return status_ok();
}

static status list_directory(struct opening *opening, const char *directory)
{
    DIR *stream = opendir(directory);
    if (stream == NULL)
        return status_from_errno(errno, "cannot read the directory %s", directory);
    status s = add_entries(opening, directory, stream);
    closedir(stream);
    return s;
}

/* --- manifests --- */

/* The arena's copy, since the JSON goes. */
static status copy_text(const struct opening *opening, const json_t *object, const char *name,
                        const char **out)
{
    const char *text = json_string_value(json_object_get(object, name));
    *out = NULL;
    if (text == NULL)
        return DAMAGED("the manifest has no %s", name);
    *out = arena_string(opening->arena, bytes_of(text));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* `data/` of the export itself, or the one that incremental exports share. */
static status find_data_file(const struct opening *opening, const char *key, const char **out)
{
    static const char *const places[] = {"/data/", "/../data/", "/"};
    const char *slash = strrchr(key, '/');
    const char *name = slash == NULL ? key : slash + 1;
    size_t size = strlen(opening->source) + strlen(name) + sizeof "/../data/";
    char *path = arena_alloc(opening->arena, size);
    if (path == NULL)
        return status_out_of_memory();
    *out = path;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, size, "%s%s%s", opening->source, places[i], name);
        if (is_there(path))
            return status_ok();
    }
    return status_make(STATUS_NOT_FOUND, "the manifest names %s, which is not there", key);
}

static status add_manifest_line(struct opening *opening, const json_t *line)
{
    const char *key;
    struct dynamo_file file = {
        .has_manifest = true,
        .items = (uint64_t)json_integer_value(json_object_get(line, "itemCount"))};
    TRY(copy_text(opening, line, "dataFileS3Key", &key));
    TRY(find_data_file(opening, key, &file.path));
    TRY(copy_text(opening, line, "md5Checksum", &file.md5));
    return add_file(opening, file);
}

static status parse_line(bytes text, const char *path, uint64_t number, json_t **out)
{
    json_error_t error;
    *out = json_loadb((const char *)text.data, text.size, 0, &error);
    return *out != NULL ? status_ok()
                        : DAMAGED("%s: line %llu is no JSON: %s", path, (unsigned long long)number,
                                  error.text);
}

static status read_lines(struct opening *opening, const char *path, struct input *input)
{
    for (;;) {
        bytes text;
        bool is_end;
        json_t *line;
        TRY(input_line(input, &text, &is_end));
        if (is_end)
            return status_ok();
        if (text.size == 0)
            continue;
        TRY(parse_line(text, path, input_line_number(input), &line));
        status s = add_manifest_line(opening, line);
        json_decref(line);
        TRY(s);
    }
}

static status read_files_manifest(struct opening *opening)
{
    struct input *input;
    const char *path = join(opening->arena, opening->source, "manifest-files.json");
    if (path == NULL)
        return status_out_of_memory();
    TRY(input_open(path, &input));
    status s = read_lines(opening, path, input);
    input_close(input);
    return s;
}

static status read_summary(struct opening *opening, const json_t *summary)
{
    struct dynamo_export *out = opening->out;
    const char *time = json_string_value(json_object_get(summary, "exportTime"));
    const char *type = json_string_value(json_object_get(summary, "exportType"));
    int64_t seconds;
    int32_t nanos;
    if (!json_is_integer(json_object_get(summary, "itemCount")))
        return DAMAGED("manifest-summary.json has no itemCount");
    out->items = (uint64_t)json_integer_value(json_object_get(summary, "itemCount"));
    out->is_incremental = type != NULL && strcmp(type, "INCREMENTAL_EXPORT") == 0;
    if (time != NULL && json_parse_timestamp(bytes_of(time), &seconds, &nanos))
        out->export_time_us = seconds * 1000 * 1000;
    return status_ok();
}

static status check_sum(const struct dynamo_export *out)
{
    uint64_t items = 0;
    for (size_t i = 0; i < out->count; i++)
        items += out->files[i].items;
    return items == out->items
               ? status_ok()
               : DAMAGED("manifest-summary.json counts %llu items, manifest-files.json %llu",
                         (unsigned long long)out->items, (unsigned long long)items);
}

static status open_manifest(struct opening *opening, const char *path)
{
    json_error_t error;
    json_t *summary = json_load_file(path, 0, &error);
    if (summary == NULL)
        return DAMAGED("%s is no JSON: %s", path, error.text);
    status s = read_summary(opening, summary);
    json_decref(summary);
    TRY(s);
    opening->out->has_manifest = true;
    TRY(read_files_manifest(opening));
    return check_sum(opening->out);
}

/* --- all of it --- */

static status open_directory(struct opening *opening)
{
    const char *summary = join(opening->arena, opening->source, "manifest-summary.json");
    const char *data = join(opening->arena, opening->source, "data");
    if (summary == NULL || data == NULL)
        return status_out_of_memory();
    if (is_there(summary))
        return open_manifest(opening, summary);
    return list_directory(opening, is_there(data) ? data : opening->source);
}

status dynamo_export_open(const char *source, struct arena *arena, struct dynamo_export *out)
{
    struct opening opening = {.source = source, .arena = arena, .out = out};
    const struct dynamo_file file = {.path = source};
    struct stat about;
    *out = (struct dynamo_export){.export_time_us = -1};
    if (strcmp(source, "-") == 0)
        return add_file(&opening, file);
    if (stat(source, &about) != 0)
        return status_from_errno(errno, "cannot read %s", source);
    return S_ISDIR(about.st_mode) ? open_directory(&opening) : add_file(&opening, file);
}
