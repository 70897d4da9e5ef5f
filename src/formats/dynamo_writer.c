/* See dynamo_writer.h.
 *
 * Files begin and end at flushes alone. A flush that ends a file may be the last that this process
 * does before its position is kept: then the file has its final name already, and gets the other
 * one back. */
#include "formats/dynamo_writer.h"

#include "formats/dynamo_check.h"
#include "formats/input.h"
#include "formats/output.h"
#include "os/digest.h"
#include "wire/grpc_text.h"
#include "wire/json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_TEXT_MOST = 256 << 20, /* a file that is larger ends at the next flush */
    ARENA_LIMIT = 64 << 20,
    LINE_LIMIT = 512 << 20,
};

struct dynamo_writer {
    char *directory;
    struct dynamo_position position;
    struct output *file;     /* NULL: none has been begun */
    struct output *manifest; /* the list of files */
    struct buffer line;
    struct buffer path;
};

/* "<directory>/<name>", until the next call. NULL: no memory. */
static const char *path_of(struct dynamo_writer *writer, const char *name)
{
    buffer_clear(&writer->path);
    buffer_append_format(&writer->path, "%s/%s%c", writer->directory, name, 0);
    return writer->path.failed ? NULL : (const char *)writer->path.data;
}

/* "data/part-00007.json.gz" */
enum { NAME_SIZE = 64 };

static void name_file(uint64_t number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "data/part-%05llu.json.gz", (unsigned long long)number);
}

/* --- opening --- */

static status make_directory(const char *path)
{
    if (path == NULL)
        return status_out_of_memory();
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return status_ok();
    return status_from_errno(errno, "cannot make the directory %s", path);
}

static status need_empty(const char *path)
{
    DIR *stream = opendir(path);
    size_t count = 0;
    if (stream == NULL)
        return status_from_errno(errno, "cannot read the directory %s", path);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return count == 0 ? status_ok()
                      : status_make(STATUS_ALREADY_EXISTS, "there is something in %s", path);
}

/* A file that had been ended is open again. */
static status reopen(struct dynamo_writer *writer, const char *name)
{
    const char *path = path_of(writer, name);
    char *from = path == NULL ? NULL : strdup(path);
    if (from == NULL)
        return status_out_of_memory();
    struct buffer part = {0};
    buffer_append_format(&part, "%s.part%c", from, 0);
    status s = part.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s) && rename(from, (const char *)part.data) != 0 && errno != ENOENT)
        s = status_from_errno(errno, "cannot rename %s", from);
    buffer_free(&part);
    free(from);
    return s;
}

static status open_file(struct dynamo_writer *writer)
{
    char name[NAME_SIZE];
    if (writer->file != NULL)
        return status_ok();
    name_file(writer->position.file, name);
    const char *path = path_of(writer, name);
    return path == NULL ? status_out_of_memory()
                        : output_open(path, true, writer->position.file_bytes, &writer->file);
}

static status open_all(struct dynamo_writer *writer, bool is_new)
{
    char name[NAME_SIZE];
    if (writer->directory == NULL)
        return status_out_of_memory();
    TRY(make_directory(writer->directory));
    if (is_new)
        TRY(need_empty(writer->directory));
    TRY(make_directory(path_of(writer, "data")));
    name_file(writer->position.file, name);
    TRY(reopen(writer, name));
    TRY(reopen(writer, "manifest-files.json"));
    const char *manifest = path_of(writer, "manifest-files.json");
    return manifest == NULL
               ? status_out_of_memory()
               : output_open(manifest, false, writer->position.manifest_bytes, &writer->manifest);
}

status dynamo_writer_create(const char *directory, const struct dynamo_position *position,
                            struct dynamo_writer **out)
{
    struct dynamo_writer *writer = *out = calloc(1, sizeof *writer);
    if (writer == NULL)
        return status_out_of_memory();
    writer->directory = strdup(directory);
    if (position != NULL)
        writer->position = *position;
    status s = open_all(writer, position == NULL);
    if (status_is_ok(s))
        return s;
    dynamo_writer_destroy(writer);
    *out = NULL;
    return s;
}

void dynamo_writer_destroy(struct dynamo_writer *writer)
{
    if (writer == NULL)
        return;
    output_close(writer->file);
    output_close(writer->manifest);
    buffer_free(&writer->line);
    buffer_free(&writer->path);
    free(writer->directory);
    free(writer);
}

/* --- items --- */

/* {"M":{…}} with another name before it. */
static void write_line(const struct item_value *item, struct buffer *out)
{
    static const char name[] = "{\"Item\":";
    const size_t spare = strlen(name) - strlen("{\"M\":");
    buffer_clear(out);
    buffer_append(out, name, spare);
    item_write_json(item, out);
    if (!out->failed)
        memcpy(out->data, name, strlen(name));
}

uint64_t dynamo_item_checksum(const struct item_value *item)
{
    struct buffer line = {0};
    write_line(item, &line);
    uint64_t hash = line.failed ? 0 : bytes_hash(buffer_bytes(&line));
    buffer_free(&line);
    return hash;
}

status dynamo_writer_add(struct dynamo_writer *writer, const struct item_value *item)
{
    struct dynamo_position *position = &writer->position;
    write_line(item, &writer->line);
    if (writer->line.failed)
        return status_out_of_memory();
    position->checksum += bytes_hash(buffer_bytes(&writer->line));
    buffer_append_byte(&writer->line, '\n');
    if (writer->line.failed)
        return status_out_of_memory();
    TRY(open_file(writer));
    TRY(output_write(writer->file, buffer_bytes(&writer->line)));
    position->items++;
    position->file_items++;
    position->text += writer->line.size;
    position->file_text += writer->line.size;
    return status_ok();
}

/* --- files that end --- */

static void append_base64(bytes b, struct buffer *out)
{
    base64_encode(b, out);
    buffer_append(out, "==", (3 - b.size % 3) % 3);
}

/* {"itemCount":3,"md5Checksum":"…","etag":"…","dataFileS3Key":"data/part-00000.json.gz"} */
static status list_file(struct dynamo_writer *writer, const char *path, const char *name)
{
    uint8_t md5[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_file(DIGEST_MD5, path, md5, &size));
    buffer_clear(&writer->line);
    buffer_append_format(&writer->line, "{\"itemCount\":%llu,\"md5Checksum\":\"",
                         (unsigned long long)writer->position.file_items);
    append_base64(bytes_make(md5, size), &writer->line);
    buffer_append_bytes(&writer->line, bytes_of("\",\"etag\":\""));
    for (size_t i = 0; i < size; i++)
        buffer_append_format(&writer->line, "%02x", md5[i]);
    buffer_append_format(&writer->line, "\",\"dataFileS3Key\":\"%s\"}\n", name);
    if (writer->line.failed)
        return status_out_of_memory();
    return output_write(writer->manifest, buffer_bytes(&writer->line));
}

static status end_file(struct dynamo_writer *writer)
{
    struct dynamo_position *position = &writer->position;
    char name[NAME_SIZE];
    uint64_t length;
    TRY(output_sync(writer->file, &length));
    TRY(output_finish(writer->file));
    output_close(writer->file);
    writer->file = NULL;
    name_file(position->file, name);
    const char *path = path_of(writer, name);
    TRY(path == NULL ? status_out_of_memory() : list_file(writer, path, name));
    position->file++;
    position->file_bytes = position->file_items = position->file_text = 0;
    return status_ok();
}

status dynamo_writer_flush(struct dynamo_writer *writer, struct dynamo_position *position)
{
    if (writer->position.file_text > FILE_TEXT_MOST)
        TRY(end_file(writer));
    if (writer->file != NULL)
        TRY(output_sync(writer->file, &writer->position.file_bytes));
    TRY(output_sync(writer->manifest, &writer->position.manifest_bytes));
    *position = writer->position;
    return status_ok();
}

/* --- the end --- */

static status write_whole(struct dynamo_writer *writer, const char *name, bytes text)
{
    struct output *output;
    uint64_t length;
    const char *path = path_of(writer, name);
    TRY(path == NULL ? status_out_of_memory() : output_open(path, false, 0, &output));
    status s = output_write(output, text);
    if (status_is_ok(s))
        s = output_sync(output, &length);
    if (status_is_ok(s))
        s = output_finish(output);
    output_close(output);
    return s;
}

static status write_checksum(struct dynamo_writer *writer, const char *manifest, const char *name)
{
    uint8_t md5[DIGEST_MOST_BYTES];
    size_t size;
    const char *path = path_of(writer, manifest);
    TRY(path == NULL ? status_out_of_memory() : digest_file(DIGEST_MD5, path, md5, &size));
    buffer_clear(&writer->line);
    append_base64(bytes_make(md5, size), &writer->line);
    return writer->line.failed ? status_out_of_memory()
                               : write_whole(writer, name, buffer_bytes(&writer->line));
}

static void append_time(struct buffer *out, const char *name, int64_t us)
{
    const int64_t us_per_s = 1000 * 1000;
    buffer_append_format(out, "\"%s\":", name);
    json_write_timestamp(us / us_per_s, (int32_t)(us % us_per_s / 1000 * 1000 * 1000), out);
    buffer_append_byte(out, ',');
}

static status write_summary(struct dynamo_writer *writer, const char *table, int64_t started_us,
                            int64_t ended_us)
{
    struct buffer text = {0};
    buffer_append_bytes(&text, bytes_of("{\"version\":\"2020-06-30\",\"exportArn\":null,"));
    append_time(&text, "startTime", started_us);
    append_time(&text, "endTime", ended_us);
    append_time(&text, "exportTime", started_us);
    buffer_append_bytes(&text, bytes_of("\"tableArn\":"));
    json_encode_string(bytes_of(table), &text);
    buffer_append_format(&text,
                         ",\"tableId\":null,\"s3Bucket\":null,\"s3Prefix\":null,"
                         "\"s3SseAlgorithm\":null,\"s3SseKmsKeyId\":null,"
                         "\"manifestFilesS3Key\":\"manifest-files.json\",\"billedSizeBytes\":%llu,"
                         "\"itemCount\":%llu,\"outputFormat\":\"DYNAMODB_JSON\","
                         "\"exportType\":\"FULL_EXPORT\"}\n",
                         (unsigned long long)writer->position.text,
                         (unsigned long long)writer->position.items);
    status s = text.failed ? status_out_of_memory()
                           : write_whole(writer, "manifest-summary.json", buffer_bytes(&text));
    buffer_free(&text);
    return s;
}

status dynamo_writer_finish(struct dynamo_writer *writer, const char *table, int64_t started_us,
                            int64_t ended_us)
{
    uint64_t length;
    TRY(open_file(writer)); /* of nothing, too, there is a file */
    TRY(end_file(writer));
    TRY(output_sync(writer->manifest, &length));
    TRY(output_finish(writer->manifest));
    TRY(write_checksum(writer, "manifest-files.json", "manifest-files.checksum"));
    TRY(write_summary(writer, table, started_us, ended_us));
    return write_checksum(writer, "manifest-summary.json", "manifest-summary.checksum");
}

/* --- checking --- */

static status check_line(bytes line, struct arena *arena, uint64_t *checksum)
{
    struct dynamo_record record;
    arena_reset(arena);
    TRY(dynamo_record_read(DYNAMO_JSON, line, arena, &record));
    *checksum += dynamo_item_checksum(&record.item);
    return status_ok();
}

static status check_lines(struct input *input, struct arena *arena, uint64_t *items,
                          uint64_t *checksum)
{
    for (;;) {
        bytes line;
        bool is_end;
        TRY(input_line(input, &line, &is_end));
        if (is_end)
            return status_ok();
        TRY(check_line(line, arena, checksum));
        ++*items;
    }
}

static status check_file(const struct dynamo_file *file, struct arena *arena, uint64_t *items,
                         uint64_t *checksum)
{
    struct input *input;
    uint64_t before = *items;
    TRY(dynamo_file_check(file));
    TRY(input_open(file->path, &input));
    status s = check_lines(input, arena, items, checksum);
    input_close(input);
    TRY(s);
    return *items - before == file->items
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "%s has not as many items as the manifest says",
                             file->path);
}

static status check_files(const char *directory, struct arena *arena, struct arena *lines,
                          uint64_t *items, uint64_t *checksum)
{
    struct dynamo_export export;
    TRY(dynamo_export_open(directory, arena, &export));
    for (size_t i = 0; i < export.count; i++)
        TRY(check_file(&export.files[i], lines, items, checksum));
    return status_ok();
}

status dynamo_writer_check(const char *directory, uint64_t *items, uint64_t *checksum)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct arena *lines = arena_create(LINE_LIMIT);
    *items = *checksum = 0;
    status s = arena == NULL || lines == NULL
                   ? status_out_of_memory()
                   : check_files(directory, arena, lines, items, checksum);
    arena_destroy(arena);
    arena_destroy(lines);
    return s;
}
