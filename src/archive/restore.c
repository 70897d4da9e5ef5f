/* See restore.h. */
#include "archive/restore.h"

#include "base/check.h"
#include "base/dates.h"
#include "place/sealed.h"
#include "stream/eras.h"
#include "tablet/change_log.h"
#include "tablet/commit.h"
#include "tablet/replay.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PIECE_BYTES = 1 << 30, MOST_PATH = 4096 };

/* --- moments --- */

uint64_t sequence_at(int64_t time_us)
{
    return version_at(time_us + 1) - 1;
}

int64_t sequence_time_us(uint64_t sequence)
{
    return version_time_us(sequence);
}

status archive_parse_moment(const char *text, uint64_t *out)
{
    int64_t seconds;
    int32_t nanos;
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && *out != ARCHIVE_END)
        return status_ok();
    if (json_parse_timestamp(bytes_of(text), &seconds, &nanos) && seconds > 0 &&
        seconds < INT64_C(1) << 32) {
        *out = sequence_at(seconds * 1000000 + nanos / 1000);
        return status_ok();
    }
    return status_make(STATUS_INVALID_ARGUMENT,
                       "\"%s\" is neither a version nor a time like 2026-11-23T10:15:00Z", text);
}

/* --- lists --- */

struct gathering {
    uint64_t stream;
    struct buffer pieces;
};

static status gather_piece(void *context, const struct place_entry *entry)
{
    struct gathering *gathering = context;
    struct piece piece;
    if (entry->is_folder || !piece_name_parse(entry->name, &piece))
        return status_ok();
    piece.stream = gathering->stream;
    buffer_append(&gathering->pieces, &piece, sizeof piece);
    return gathering->pieces.failed ? status_out_of_memory() : status_ok();
}

status archive_list_pieces(struct place *place, uint64_t stream, struct piece_list *out)
{
    struct gathering gathering = {.stream = stream};
    char folder[PIECE_NAME_SIZE];
    stream_folder(stream, folder);
    *out = (struct piece_list){0};
    status s = place_list(place, folder, gather_piece, &gathering);
    if (!status_is_ok(s)) {
        buffer_free(&gathering.pieces);
        return s;
    }
    out->pieces = (struct piece *)(void *)gathering.pieces.data;
    out->count = gathering.pieces.size / sizeof *out->pieces;
    return status_ok();
}

void piece_list_free(struct piece_list *list)
{
    free(list->pieces);
    *list = (struct piece_list){0};
}

struct streams_visit {
    status (*visit)(void *context, uint64_t stream);
    void *context;
};

static status visit_stream(void *context, const struct place_entry *entry)
{
    const struct streams_visit *visit = context;
    uint64_t stream;
    if (!entry->is_folder || !stream_name_parse(entry->name, &stream))
        return status_ok();
    return visit->visit(visit->context, stream);
}

status archive_list_streams(struct place *place, status (*visit)(void *context, uint64_t stream),
                            void *context)
{
    struct streams_visit each = {.visit = visit, .context = context};
    return place_list(place, "archive", visit_stream, &each);
}

status archive_get_piece(struct place *place, const struct piece *name, struct buffer *text,
                         struct piece *out)
{
    char path[PIECE_NAME_SIZE];
    piece_name(name, path);
    buffer_clear(text);
    TRY(place_get(place, path, MOST_PIECE_BYTES, text));
    TRY(place_check_plain(place, path, buffer_bytes(text)));
    status s = piece_parse(buffer_bytes(text), out);
    if (status_is_ok(s) && (out->kind != name->kind || out->stream != name->stream ||
                            out->number != name->number || out->last != name->last))
        s = status_make(STATUS_DATA_LOSS, "it is another one");
    if (status_is_ok(s))
        return s;
    status damage =
        status_make(STATUS_DATA_LOSS, "%s/%s: %s", place_title(place), path, status_message(s));
    status_free(s);
    return damage;
}

/* --- the plan --- */

struct plan {
    const struct archive_restore *restore;
    struct change_log_state state; /* of the copy */
    uint64_t from;                 /* the copy has all up to this sequence */
    uint64_t until;
    uint64_t next; /* the first whole backup after `until`; 0: none is known */
    struct piece_list list;
    size_t first; /* in the list, that has events after `from` */
    size_t end;   /* in the list, behind the last that has events up to `until` */
};

static status read_copy(struct plan *plan)
{
    const struct archive_restore *restore = plan->restore;
    bool exists;
    TRY(change_log_read(restore->catalog, &plan->state, &exists));
    if (!exists)
        return status_make(STATUS_FAILED_PRECONDITION, "%s is of a server that kept no archive",
                           restore->what);
    struct keyspace *log = store_keyspace_find(restore->store, plan->state.keyspace);
    if (log == NULL)
        return status_make(STATUS_DATA_LOSS, "the keyspace of the change log is missing");
    TRY(change_log_find_newest(log, plan->state.taken, &plan->from));
    if (plan->state.gap_to > plan->from)
        plan->from = plan->state.gap_to;
    if (restore->from > plan->from) /* there was no event up to it */
        plan->from = restore->from;
    return status_ok();
}

static status read_list(struct plan *plan)
{
    struct place *place = plan->restore->place;
    status s = archive_list_pieces(place, plan->state.stream, &plan->list);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_FAILED_PRECONDITION, "%s has no archive of the server that %s is of",
                       place_title(place), plan->restore->what);
}

static void tell_dates(uint64_t first, uint64_t second, date_text texts[2])
{
    const int64_t us[] = {sequence_time_us(first), sequence_time_us(second)};
    dates_tell(us, 2, texts);
}

/* The end of the stream; that of the copy if there are no pieces behind it. */
static uint64_t end_of(const struct plan *plan)
{
    uint64_t last = plan->list.count == 0 ? 0 : plan->list.pieces[plan->list.count - 1].last;
    return last > plan->from ? last : plan->from;
}

static status check_bounds(struct plan *plan)
{
    date_text dates[2];
    uint64_t end = end_of(plan);
    plan->until = plan->restore->until == ARCHIVE_END ? end : plan->restore->until;
    tell_dates(plan->until < plan->from ? plan->from : end, plan->until, dates);
    if (plan->until < plan->from)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "%s is of %s, which is later than %s: take an older one",
                           plan->restore->what, dates[0], dates[1]);
    if (plan->until > end)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the archive ends with a change of %s (version %llu), before %s: "
                           "without --until all of it is taken",
                           dates[0], (unsigned long long)end, dates[1]);
    return status_ok();
}

static void choose_pieces(struct plan *plan)
{
    const struct piece *pieces = plan->list.pieces;
    size_t count = plan->list.count;
    while (plan->first < count && pieces[plan->first].last <= plan->from)
        plan->first++;
    plan->end = plan->first;
    while (plan->end < count &&
           (plan->end == plan->first || pieces[plan->end - 1].last < plan->until))
        plan->end++;
    if (plan->until == plan->from)
        plan->end = plan->first;
}

/* Writes the moment that was asked for, and the nearest: of the later one the first second that has
 * begun, unless all are told to the microsecond. */
static void tell_nearest(const struct plan *plan, uint64_t before, uint64_t after,
                         date_text texts[3])
{
    int64_t us[] = {sequence_time_us(plan->until), sequence_time_us(before),
                    sequence_time_us(after)};
    dates_tell(us, 3, texts);
    if (strlen(texts[2]) < CLOCK_DATE_SIZE)
        clock_date(us[2] + 999999, texts[2]);
}

/* An error that tells what keeps the archive from going on between `before` and `behind`, or up to
 * there. */
static status refuse(const struct plan *plan, enum status_code code, const char *wrong,
                     uint64_t before, uint64_t behind)
{
    date_text dates[3];
    uint64_t after = plan->next != 0 ? plan->next : behind;
    tell_nearest(plan, before, after, dates);
    return status_make(code,
                       "%s: the nearest moments are %s (version %llu), and%s %s (version %llu)",
                       wrong, dates[1], (unsigned long long)before,
                       plan->next != 0 ? "" : ", with a whole backup made since,", dates[2],
                       (unsigned long long)after);
}

static status refuse_gap(const struct plan *plan, const struct piece *gap, uint64_t before)
{
    date_text dates[3];
    char wrong[64 + DATE_TEXT_SIZE];
    tell_nearest(plan, before, plan->next != 0 ? plan->next : gap->last, dates);
    snprintf(wrong, sizeof wrong, "the archive has a gap before %s", dates[0]);
    return refuse(plan, STATUS_FAILED_PRECONDITION, wrong, before, gap->last);
}

/* The end of a hole: where the piece behind it begins; if that can be read. */
static uint64_t end_of_hole(const struct plan *plan, const struct piece *behind)
{
    struct buffer text = {0};
    struct piece piece;
    status s = archive_get_piece(plan->restore->place, behind, &text, &piece);
    uint64_t end = status_is_ok(s) ? piece.after : behind->last;
    status_free(s);
    buffer_free(&text);
    return end;
}

static status refuse_hole(const struct plan *plan, size_t i, uint64_t before)
{
    char wrong[32 + PIECE_RANGE_SIZE], missing[PIECE_RANGE_SIZE];
    const struct piece *piece = &plan->list.pieces[i];
    snprintf(wrong, sizeof wrong, "of the archive %s",
             piece_missing(piece[-1].number, piece->number, missing));
    return refuse(plan, STATUS_DATA_LOSS, wrong, before, end_of_hole(plan, piece));
}

/* Nothing is missing in front of the first piece if the copy has all that came before it. */
static bool begins_with(const struct plan *plan, size_t i)
{
    return i == plan->first && end_of_hole(plan, &plan->list.pieces[i]) <= plan->from;
}

/* The first piece that is there is not the stream's, and begins too late. */
static status check_beginning(const struct plan *plan)
{
    if (plan->first > 0 || plan->end == 0 || plan->list.pieces[0].number == 1 ||
        begins_with(plan, 0))
        return status_ok();
    char wrong[128];
    snprintf(wrong, sizeof wrong, "the archive begins after %s: what is between is not there",
             plan->restore->what);
    return refuse(plan, STATUS_FAILED_PRECONDITION, wrong, plan->from,
                  end_of_hole(plan, &plan->list.pieces[0]));
}

/* Checks the pieces by their names alone, except those behind a hole: before anything is changed.
 */
static status check_pieces(const struct plan *plan)
{
    const struct piece *pieces = plan->list.pieces;
    uint64_t before = plan->from;
    TRY(check_beginning(plan));
    for (size_t i = plan->first; i < plan->end; i++) {
        bool is_next = i == 0 || pieces[i].number == pieces[i - 1].number + 1;
        if (!is_next && !begins_with(plan, i))
            return refuse_hole(plan, i, before);
        if (pieces[i].kind == PIECE_GAP && plan->until > before)
            return refuse_gap(plan, &pieces[i], before);
        before = pieces[i].last;
    }
    return status_ok();
}

static status check_names(struct plan *plan)
{
    TRY(read_list(plan));
    TRY(check_bounds(plan));
    choose_pieces(plan);
    return check_pieces(plan);
}

static status make_plan(struct plan *plan)
{
    TRY(read_copy(plan));
    return check_names(plan);
}

status archive_check(struct place *place, const struct archive_reach *read_tier)
{
    const struct archive_restore restore = {
        .place = place, .what = "the backup", .until = read_tier->until};
    struct plan plan = {.restore = &restore,
                        .state = {.stream = read_tier->stream},
                        .from = read_tier->from,
                        .next = read_tier->next};
    status s = check_names(&plan);
    piece_list_free(&plan.list);
    return s;
}

/* --- files that keyspaces were made of --- */

struct taking {
    const struct archive_restore *restore;
    uint64_t stream;
    struct files *files;
    bool has_failed; /* for a file that is missing or damaged */
};

static const char *scratch_path(const struct taking *taking, const struct event_change *change,
                                uint64_t index, char out[MOST_PATH])
{
    int size = snprintf(out, MOST_PATH, "%s/%llu-%llu", taking->restore->scratch,
                        (unsigned long long)change->keyspace, (unsigned long long)index);
    return size < MOST_PATH ? out : NULL;
}

static bool always(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static status get_file(struct taking *taking, const struct event_change *change, uint64_t index,
                       const struct event_file *expected, char **out)
{
    const struct store_pacer unpaced = {.go_on = always};
    char name[PIECE_NAME_SIZE], path[MOST_PATH];
    struct file_sum sum;
    if (scratch_path(taking, change, index, path) == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s is too long a name",
                           taking->restore->scratch);
    stream_file_name(taking->stream, change->keyspace, index, name);
    status s = place_get_file(taking->restore->place, name, path, NULL);
    taking->has_failed = s.code == STATUS_NOT_FOUND;
    TRY(s);
    TRY(files_sum(taking->files, path, &unpaced, &sum));
    taking->has_failed = sum.size != expected->size || sum.crc32c != expected->crc32c;
    if (taking->has_failed)
        return status_make(STATUS_DATA_LOSS, "%s/%s is damaged",
                           place_title(taking->restore->place), name);
    *out = strdup(path);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status get_files(struct taking *taking, const struct event_change *change, char **paths)
{
    struct event_file *expected = calloc(change->count + 1, sizeof *expected);
    status s = expected == NULL ? status_out_of_memory() : status_ok();
    if (expected != NULL)
        event_files(change, expected);
    for (uint64_t i = 0; i < change->count && status_is_ok(s); i++)
        s = get_file(taking, change, i, &expected[i], &paths[i]);
    free(expected);
    return s;
}

static status take_in(void *context, const struct event_change *change)
{
    struct taking *taking = context;
    struct keyspace *keyspace;
    char **paths = calloc(change->count + 1, sizeof *paths);
    if (paths == NULL)
        return status_out_of_memory();
    status s = files_make_directory(taking->files, taking->restore->scratch);
    if (status_is_ok(s))
        s = get_files(taking, change, paths);
    if (status_is_ok(s))
        s = store_keyspace_import(taking->restore->store, change->keyspace,
                                  (const char *const *)paths, change->count, &keyspace);
    for (uint64_t i = 0; i < change->count; i++) {
        if (paths[i] != NULL)
            status_ignore(files_remove(taking->files, paths[i]));
        free(paths[i]);
    }
    free(paths);
    return s;
}

/* --- applying --- */

/* The first one's former is not at hand: it may have expired. */
static status check_chain(const struct plan *plan, const struct piece *piece,
                          const struct piece *before)
{
    char path[PIECE_NAME_SIZE];
    bool follows = before == NULL
                       ? piece->after <= plan->from
                       : piece->after == before->last &&
                             memcmp(piece->chain, before->digest, sizeof piece->chain) == 0;
    if (follows)
        return status_ok();
    piece_name(piece, path);
    if (before == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the archive begins after %s: what is between is not there",
                           plan->restore->what);
    return status_make(STATUS_DATA_LOSS, "%s/%s does not follow the piece before it",
                       place_title(plan->restore->place), path);
}

static status apply_piece(struct replayer *replayer, const struct piece *piece)
{
    bytes entries = piece->entries, entry;
    while (piece_next_entry(&entries, &entry))
        TRY(replayer_apply(replayer, entry));
    return replayer_flush(replayer);
}

/* Only by reading is it known that a piece, or a file that it names, is damaged: by then the
 * directory is on its way. */
static status refuse_damage(const struct plan *plan, size_t i, status damage)
{
    const struct piece *pieces = plan->list.pieces;
    uint64_t before = i == plan->first ? plan->from : pieces[i - 1].last;
    status told = refuse(plan, STATUS_DATA_LOSS, status_message(damage), before, pieces[i].last);
    status_free(damage);
    return told;
}

static bool is_damage(status s)
{
    return s.code == STATUS_DATA_LOSS || s.code == STATUS_NOT_FOUND;
}

static status apply_pieces(const struct plan *plan, struct replayer *replayer,
                           const struct taking *taking)
{
    struct piece before, piece;
    struct buffer text = {0};
    status s = status_ok();
    for (size_t i = plan->first; i < plan->end && status_is_ok(s); i++) {
        s = archive_get_piece(plan->restore->place, &plan->list.pieces[i], &text, &piece);
        if (status_is_ok(s))
            s = check_chain(plan, &piece, i == plan->first ? NULL : &before);
        if (is_damage(s))
            s = refuse_damage(plan, i, s);
        if (status_is_ok(s))
            s = apply_piece(replayer, &piece);
        if (taking->has_failed)
            s = refuse_damage(plan, i, s);
        before = piece;
    }
    buffer_free(&text);
    return s;
}

/* The choice of rows: all, none yet, or those of some keyspaces. */
struct choice {
    uint64_t *keyspaces; /* NULL: all */
    size_t count;
    bool is_last; /* else the catalog alone, and no files */
};

/* What the stream has behind the moment was given to readers, perhaps: it is not here. */
static status finish(const struct plan *plan, struct replayer *replayer)
{
    const struct archive_restore *restore = plan->restore;
    TRY(replayer_finish(replayer, end_of(plan) + 1));
    return stream_eras_begin(restore->store, restore->catalog, plan->until);
}

static status replay(const struct plan *plan, const struct choice *choice,
                     struct archive_restored *out)
{
    const struct archive_restore *restore = plan->restore;
    struct taking taking = {
        .restore = restore, .stream = plan->state.stream, .files = files_of_store(restore->store)};
    const struct replay_options options = {.store = restore->store,
                                           .catalog = restore->catalog,
                                           .clock = restore->clock,
                                           .after = plan->from,
                                           .until = plan->until,
                                           .keyspaces = choice->keyspaces,
                                           .keyspace_count = choice->count,
                                           .take_in = choice->is_last ? take_in : NULL,
                                           .context = &taking};
    struct replayer *replayer;
    TRY(replayer_create(&options, &replayer));
    status s = apply_pieces(plan, replayer, &taking);
    if (status_is_ok(s) && choice->is_last)
        s = finish(plan, replayer);
    struct replay_counts counts = replayer_counts(replayer);
    *out = (struct archive_restored){.from = plan->from,
                                     .to = counts.newest == 0 ? plan->from : counts.newest,
                                     .until = plan->until,
                                     .is_all = restore->until == ARCHIVE_END,
                                     .events = counts.events,
                                     .pieces = plan->end - plan->first};
    replayer_destroy(replayer);
    return s;
}

/* The catalog goes first, since only it says in which keyspaces the rows will be. To go over it
 * twice changes nothing: its events are puts and deletions. */
static status replay_chosen(const struct plan *plan, struct archive_restored *out)
{
    const struct archive_restore *restore = plan->restore;
    uint64_t none = 0;
    const struct choice catalog = {.keyspaces = &none};
    struct choice rows = {.is_last = true};
    TRY(replay(plan, &catalog, out));
    TRY(restore->choose(restore->context, restore->catalog, &rows.keyspaces, &rows.count));
    status s = replay(plan, &rows, out);
    free(rows.keyspaces);
    return s;
}

status archive_restore(const struct archive_restore *restore, struct archive_restored *out)
{
    const struct choice all = {.is_last = true};
    struct plan plan = {.restore = restore, .next = restore->next};
    *out = (struct archive_restored){0};
    status s = make_plan(&plan);
    if (status_is_ok(s)) {
        s = restore->choose == NULL ? replay(&plan, &all, out) : replay_chosen(&plan, out);
        status_ignore(
            files_remove_flat_directory(files_of_store(restore->store), restore->scratch));
    }
    piece_list_free(&plan.list);
    return s;
}
