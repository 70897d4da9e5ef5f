/* `trestle archive verify`: all of an archive, read. */
#include "archive/verify.h"

#include "archive/bases.h"
#include "backup/whole.h"
#include "cluster/catalog.h"
#include "cmd/backup/archive.h"
#include "cmd/command.h"
#include "server/offline_cluster.h"
#include "tablet/change_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

struct verification {
    struct place *place;
    struct archive_reading reading;
    struct whole_work work;     /* its rate */
    uint64_t stream;            /* that the server puts; 0: it is not known */
    struct archive_known known; /* of that */
    bool has_seen;              /* that */
    size_t streams;
    size_t damages;
};

static void write_help(struct buffer *out)
{
    archive_write_place_options("trestle archive verify PLACE", true, out);
    buffer_append_format(
        out,
        "\nReads all that is archived in PLACE: each piece is to have its checksum and to follow "
        "the\n"
        "one before, and each file that a piece names is to be what it says. What is missing or\n"
        "damaged is named, and between which moments the server can be had all the same: with a\n"
        "whole backup of a moment in between, any from there on. Exits with 1 if something is\n"
        "missing or damaged, or nothing is archived there. What is missing at either end of an\n"
        "archive is seen by what its server knows alone, in its data directory.\n");
}

static void print_damage(void *context, const char *what)
{
    (void)context;
    fprintf(stderr, "damage: %s\n", what);
}

static void print_moments(void *context, uint64_t after, uint64_t last)
{
    date_text dates[2];
    (void)context;
    archive_tell_dates(after, last, dates);
    printf("  moments: after %s (version %" PRIu64 "), up to %s (version %" PRIu64 ")\n", dates[0],
           after, dates[1], last);
}

/* --- what the server knows --- */

static status note_base(void *context, const struct archive_base *base)
{
    struct verification *verification = context;
    uint64_t *oldest = &verification->known.oldest_base;
    if (base->stream == verification->stream && (*oldest == 0 || base->version < *oldest))
        *oldest = base->version;
    return status_ok();
}

static status read_known(struct verification *verification, struct store *store)
{
    struct change_log_state state;
    bool is_archived;
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    TRY(change_log_read(catalog, &state, &is_archived));
    if (!is_archived)
        return status_make(STATUS_FAILED_PRECONDITION, "the server of %s has no archive",
                           verification->reading.data_dir);
    verification->stream = state.stream;
    verification->known.pieces = state.pieces;
    memcpy(verification->known.digest, state.chain, sizeof verification->known.digest);
    return bases_visit(catalog, note_base, verification);
}

static status learn(struct verification *verification)
{
    const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    struct store *store;
    if (verification->reading.data_dir == NULL)
        return status_ok();
    struct store_options how = offline_store_options(verification->reading.data_dir, &log);
    how.read_only = true;
    TRY(store_open(&how, &store));
    status s = read_known(verification, store);
    store_close(store);
    return s;
}

/* --- reading --- */

static bool go_on(void *context, uint64_t bytes)
{
    status s = whole_pace(context, bytes);
    bool goes_on = status_is_ok(s);
    status_free(s);
    return goes_on;
}

static status verify_stream(void *context, uint64_t stream)
{
    struct verification *verification = context;
    const struct store_pacer pacer = {.go_on = go_on, .context = &verification->work};
    const struct archive_verifying verifying = {
        .place = verification->place,
        .pacer = &pacer,
        .stream = stream,
        .known = stream == verification->stream ? &verification->known : NULL,
        .damage = print_damage,
        .moments = print_moments};
    struct archive_verified verified;
    verification->has_seen = verification->has_seen || stream == verification->stream;
    printf("%016" PRIx64 ":\n", stream);
    TRY(archive_verify(&verifying, &verified));
    printf("  %zu pieces, %zu files, %.1f MB: %s\n", verified.pieces, verified.files,
           (double)verified.bytes / (1 << 20), verified.damages == 0 ? "whole" : "damaged");
    verification->streams++;
    verification->damages += verified.damages;
    return status_ok();
}

/* Whether nothing is left of what the server has put. */
static void check_seen(struct verification *verification)
{
    if (verification->has_seen || verification->known.pieces == 0)
        return;
    fprintf(stderr,
            "damage: of %016" PRIx64 " nothing is left, and the server has put %" PRIu64
            " pieces\n",
            verification->stream, verification->known.pieces);
    verification->damages++;
}

static status verify(struct verification *verification)
{
    TRY(learn(verification));
    verification->work.bytes_per_second = verification->reading.rate;
    whole_begin(&verification->work, 0);
    TRY(archive_list_streams(verification->place, verify_stream, verification));
    check_seen(verification);
    if (verification->streams > 0)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "nothing is archived in %s",
                       place_title(verification->place));
}

int archive_verify_kind(const char *const *arguments)
{
    struct verification verification = {.work = {.clock = clock_system()}};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = archive_open_place(arguments, &verification.reading, &verification.place);
    if (!status_is_ok(s))
        return command_refuse("archive verify", s);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is told was found, whatever happens next */
    s = verify(&verification);
    place_close(verification.place);
    return command_end("archive verify", s, verification.damages == 0);
}
