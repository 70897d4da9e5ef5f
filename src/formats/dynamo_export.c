/* See dynamo_export.h. */
#include "formats/dynamo_export.h"

#include "base/vector.h"
#include "formats/file_md5.h"
#include "formats/input.h"
#include "os/file.h"
#include "wire/json.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAMAGED(...) status_make(STATUS_DATA_LOSS, __VA_ARGS__)

/* An export of those that are opened. */
struct manifest {
    const char *directory;
    bool is_incremental;
    uint64_t items;
    int64_t from_us; /* of an incremental one: the time that it has, from and to */
    int64_t time_us; /* -1: not known */
};

struct opening {
    const char *source;      /* as it was given */
    struct manifest *export; /* that is being read; NULL: there is no manifest */
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
    file.export_time_us = opening->export == NULL ? -1 : opening->export->time_us;
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

static bytes without_line_end(bytes text)
{
    while (text.size > 0 && strchr(" \r\n", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

/* The sum that lies beside a manifest, as NAME.checksum beside NAME.json, is the manifest's. A copy
 * of an export may have come without it. */
static status check_manifest(const struct opening *opening, const char *directory, const char *name)
{
    enum { SUM_MOST = 1 << 10 };
    char file[64];
    struct buffer sum = {0};
    snprintf(file, sizeof file, "%s.json", name);
    const char *path = join(opening->arena, directory, file);
    snprintf(file, sizeof file, "%s.checksum", name);
    const char *sum_path = join(opening->arena, directory, file);
    if (path == NULL || sum_path == NULL)
        return status_out_of_memory();
    if (!is_there(sum_path))
        return status_ok();
    TRY(file_read(sum_path, SUM_MOST, 0, &sum));
    status s = file_md5_check(path, without_line_end(buffer_bytes(&sum)), sum_path);
    buffer_free(&sum);
    return s;
}

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
    const char *directory = opening->export->directory;
    size_t size = strlen(directory) + strlen(name) + sizeof "/../data/";
    char *path = arena_alloc(opening->arena, size);
    if (path == NULL)
        return status_out_of_memory();
    *out = path;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, size, "%s%s%s", directory, places[i], name);
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
    const char *path = join(opening->arena, opening->export->directory, "manifest-files.json");
    if (path == NULL)
        return status_out_of_memory();
    TRY(check_manifest(opening, opening->export->directory, "manifest-files"));
    TRY(input_open(path, &input));
    status s = read_lines(opening, path, input);
    input_close(input);
    return s;
}

/* -1 if the summary does not say it. */
static int64_t time_of(const json_t *summary, const char *name)
{
    const char *text = json_string_value(json_object_get(summary, name));
    int64_t seconds;
    int32_t nanos;
    if (text == NULL || !json_parse_timestamp(bytes_of(text), &seconds, &nanos))
        return -1;
    return seconds * 1000 * 1000 + nanos / 1000;
}

static status read_summary(const json_t *summary, struct manifest *out)
{
    const char *type = json_string_value(json_object_get(summary, "exportType"));
    if (!json_is_integer(json_object_get(summary, "itemCount")))
        return DAMAGED("%s/manifest-summary.json has no itemCount", out->directory);
    out->items = (uint64_t)json_integer_value(json_object_get(summary, "itemCount"));
    out->is_incremental = type != NULL && strcmp(type, "INCREMENTAL_EXPORT") == 0;
    out->from_us = time_of(summary, "exportFromTime");
    out->time_us = time_of(summary, out->is_incremental ? "exportToTime" : "exportTime");
    return status_ok();
}

static status load_summary(const struct opening *opening, const char *path, struct manifest *out)
{
    json_error_t error;
    TRY(check_manifest(opening, out->directory, "manifest-summary"));
    json_t *summary = json_load_file(path, 0, &error);
    if (summary == NULL)
        return DAMAGED("%s is no JSON: %s", path, error.text);
    status s = read_summary(summary, out);
    json_decref(summary);
    return s;
}

static status check_sum(const struct opening *opening, size_t first)
{
    uint64_t items = 0;
    for (size_t i = first; i < opening->out->count; i++)
        items += opening->out->files[i].items;
    return items == opening->export->items
               ? status_ok()
               : DAMAGED("manifest-summary.json counts %llu items, manifest-files.json %llu",
                         (unsigned long long)opening->export->items, (unsigned long long)items);
}

/* Its files, behind those of the exports before. */
static status open_export(struct opening *opening, struct manifest *export)
{
    size_t first = opening->out->count;
    opening->export = export;
    opening->out->has_manifest = true;
    opening->out->is_incremental |= export->is_incremental;
    opening->out->items += export->items;
    TRY(read_files_manifest(opening));
    return check_sum(opening, first);
}

static status open_manifest(struct opening *opening, const char *path)
{
    struct manifest *export = arena_zalloc(opening->arena, sizeof *export);
    if (export == NULL)
        return status_out_of_memory();
    export->directory = opening->source;
    TRY(load_summary(opening, path, export));
    return open_export(opening, export);
}

/* --- several exports --- */

static int compare_manifests(const void *a, const void *b)
{
    const struct manifest *x = a, *y = b;
    if (x->is_incremental != y->is_incremental)
        return x->is_incremental - y->is_incremental;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static status find_exports(struct opening *opening, DIR *stream, struct vector *out)
{
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct manifest export = {.directory =
                                      join(opening->arena, opening->source, entry->d_name)};
        const char *path = export.directory == NULL
                               ? NULL
                               : join(opening->arena, export.directory, "manifest-summary.json");
        if (path == NULL)
            return status_out_of_memory();
        if (entry->d_name[0] == '.' || !is_there(path))
            continue;
        TRY(load_summary(opening, path, &export));
        if (export.is_incremental && (export.time_us < 0 || export.from_us < 0))
            return DAMAGED("%s does not say which time it is of", path);
        TRY(vector_add(out, opening->arena, &export, sizeof export));
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof(struct manifest), compare_manifests);
    return status_ok();
}

/* Checks that nothing is missing from the end of one to the beginning of the next. */
static status check_gap(const struct manifest *before, const struct manifest *next)
{
    return before->time_us < 0 || next->from_us <= before->time_us
               ? status_ok()
               : DAMAGED("between the exports %s and %s there is a time that neither has",
                         before->directory, next->directory);
}

static status open_exports(struct opening *opening, struct manifest *exports, size_t count)
{
    const struct manifest *before = NULL;
    for (size_t i = 0; i < count; i++) {
        struct manifest *export = &exports[i];
        if (before != NULL && !export->is_incremental)
            return status_make(STATUS_INVALID_ARGUMENT, "%s and %s are both full exports",
                               before->directory, export->directory);
        if (before != NULL && export->time_us <= before->time_us)
            continue;
        if (before != NULL)
            TRY(check_gap(before, export));
        TRY(open_export(opening, export));
        before = export;
    }
    return status_ok();
}

/* `*found`: there are some. */
static status look_for_exports(struct opening *opening, bool *found)
{
    struct vector exports = {0};
    DIR *stream = opendir(opening->source);
    *found = false;
    if (stream == NULL)
        return status_from_errno(errno, "cannot read the directory %s", opening->source);
    status s = find_exports(opening, stream, &exports);
    closedir(stream);
    TRY(s);
    *found = exports.count > 0;
    return open_exports(opening, exports.items, exports.count);
}

/* --- all of it --- */

static status open_directory(struct opening *opening)
{
    const char *summary = join(opening->arena, opening->source, "manifest-summary.json");
    const char *data = join(opening->arena, opening->source, "data");
    if (summary == NULL || data == NULL)
        return status_out_of_memory();
    bool found;
    if (is_there(summary))
        return open_manifest(opening, summary);
    TRY(look_for_exports(opening, &found));
    if (found)
        return status_ok();
    return list_directory(opening, is_there(data) ? data : opening->source);
}

status dynamo_export_open(const char *source, struct arena *arena, struct dynamo_export *out)
{
    struct opening opening = {.source = source, .arena = arena, .out = out};
    const struct dynamo_file file = {.path = source};
    struct stat about;
    *out = (struct dynamo_export){0};
    if (strcmp(source, "-") == 0)
        return add_file(&opening, file);
    if (stat(source, &about) != 0)
        return status_from_errno(errno, "cannot read %s", source);
    return S_ISDIR(about.st_mode) ? open_directory(&opening) : add_file(&opening, file);
}
