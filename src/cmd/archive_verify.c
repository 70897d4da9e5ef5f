/* `trestle archive verify`: all of an archive, read. */
#include "archive/verify.h"

#include "backup/whole.h"
#include "cmd/archive.h"
#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>

struct verification {
    struct place *place;
    struct whole_work work; /* its rate */
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
        "missing or damaged, or nothing is archived there.\n");
}

static void print_damage(void *context, const char *what)
{
    (void)context;
    fprintf(stderr, "damage: %s\n", what);
}

static void print_moments(void *context, uint64_t after, uint64_t last)
{
    char from[CLOCK_DATE_SIZE], to[CLOCK_DATE_SIZE];
    (void)context;
    printf("  moments: after %s (version %" PRIu64 "), up to %s (version %" PRIu64 ")\n",
           clock_date(sequence_time_us(after), from), after, clock_date(sequence_time_us(last), to),
           last);
}

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
    const struct archive_verifying verifying = {.place = verification->place,
                                                .pacer = &pacer,
                                                .stream = stream,
                                                .damage = print_damage,
                                                .moments = print_moments};
    struct archive_verified verified;
    printf("%016" PRIx64 ":\n", stream);
    TRY(archive_verify(&verifying, &verified));
    printf("  %zu pieces, %zu files, %.1f MB: %s\n", verified.pieces, verified.files,
           (double)verified.bytes / (1 << 20), verified.damages == 0 ? "whole" : "damaged");
    verification->streams++;
    verification->damages += verified.damages;
    return status_ok();
}

static status verify(struct verification *verification)
{
    whole_begin(&verification->work, 0);
    TRY(archive_list_streams(verification->place, verify_stream, verification));
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
    status s =
        archive_open_place(arguments, &verification.work.bytes_per_second, &verification.place);
    if (!status_is_ok(s))
        return command_refuse("archive verify", s);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is told was found, whatever happens next */
    s = verify(&verification);
    place_close(verification.place);
    return command_end("archive verify", s, verification.damages == 0);
}
