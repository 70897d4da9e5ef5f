#include "transfer/checkpoint.h"

#include "os/file.h"
#include "transfer/text_file.h"

#include <stdlib.h>

enum { MOST_BYTES = 16 << 20 };

/* --- writing --- */

status checkpoint_write(const char *path, const char *identity, const struct checkpoint *checkpoint)
{
    const struct transfer_counts *counts = &checkpoint->counts;
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:O, s:O?}", "transfer", identity,
                  "records", (json_int_t)counts->records, "rejected", (json_int_t)counts->rejected,
                  "ended", (json_int_t)counts->ended, "bytes", (json_int_t)counts->bytes,
                  "rejects_bytes", (json_int_t)checkpoint->rejects_bytes, "seen_bytes",
                  (json_int_t)checkpoint->seen_bytes, "made_target", checkpoint->made_target,
                  "source", checkpoint->source, "sink", checkpoint->sink);
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    status s = text == NULL ? status_out_of_memory() : text_file_replace(path, text);
    free(text);
    json_decref(json);
    return s;
}

/* --- reading --- */

static status damaged(const char *path, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the checkpoint %s %s; without it all begins anew", path,
                       what);
}

static status take(const char *path, const json_t *json, const char *identity,
                   struct checkpoint *out)
{
    const char *found;
    json_int_t records, rejected, ended = 0, bytes, rejects_bytes, seen_bytes = 0;
    int made_target = false;
    json_t *source, *sink = NULL;
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:I, s:I, s?I, s:I, s:I, s?I, s?b, s:o, s?o}",
                    "transfer", &found, "records", &records, "rejected", &rejected, "ended", &ended,
                    "bytes", &bytes, "rejects_bytes", &rejects_bytes, "seen_bytes", &seen_bytes,
                    "made_target", &made_target, "source", &source, "sink", &sink) != 0)
        return damaged(path, "cannot be read");
    if (strcmp(found, identity) != 0)
        return status_make(
            STATUS_FAILED_PRECONDITION,
            "the checkpoint %s is of something else, or of other options: %s. Remove "
            "it, or name another by --checkpoint",
            path, found);
    *out = (struct checkpoint){.counts = {.records = (uint64_t)records,
                                          .rejected = (uint64_t)rejected,
                                          .ended = (uint64_t)ended,
                                          .bytes = (uint64_t)bytes},
                               .rejects_bytes = (uint64_t)rejects_bytes,
                               .seen_bytes = (uint64_t)seen_bytes,
                               .made_target = made_target,
                               .source = json_incref(source),
                               .sink = json_incref(sink)};
    return status_ok();
}

void checkpoint_clear(struct checkpoint *checkpoint)
{
    json_decref(checkpoint->source);
    json_decref(checkpoint->sink);
    *checkpoint = (struct checkpoint){0};
}

status checkpoint_read(const char *path, const char *identity, struct checkpoint *out, bool *found)
{
    struct buffer text = {0};
    json_error_t error;
    *found = false;
    *out = (struct checkpoint){0};
    status s = file_read(path, MOST_BYTES, 0, &text);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    json_t *json = json_loadb((const char *)text.data, text.size, 0, &error);
    buffer_free(&text);
    if (json == NULL)
        return damaged(path, "is no JSON");
    s = take(path, json, identity, out);
    *found = status_is_ok(s);
    json_decref(json);
    return s;
}
