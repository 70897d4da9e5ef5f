/* See state.h. The record:
 *
 *     <form: 1> <fingerprint: 16> <sequence> <ordinal> <was ready> <user errors> <excluded rows>
 *     <excluded groups> <number of passes> then of each
 *     <kind> <since> <rows> <size> next <size> to
 *
 * all of it varints, but for what has a size. */
#include "views/state.h"

#include "base/varint.h"

enum { FORM = 1 };

static void free_pass(struct view_pass *pass)
{
    buffer_free(&pass->next);
    buffer_free(&pass->to);
    *pass = (struct view_pass){0};
}

void view_state_free(struct view_progress_state *state)
{
    for (size_t i = 0; i < state->pass_count; i++)
        free_pass(&state->passes[i]);
    *state = (struct view_progress_state){0};
}

/* --- passes --- */

static status make_pass(struct view_pass *pass, bytes from, bytes to)
{
    buffer_append_bytes(&pass->next, from);
    buffer_append_bytes(&pass->to, to);
    if (!pass->next.failed && !pass->to.failed)
        return status_ok();
    free_pass(pass);
    return status_out_of_memory();
}

static int64_t oldest(const struct view_progress_state *state, int64_t since_us)
{
    for (size_t i = 0; i < state->pass_count; i++)
        if (state->passes[i].since_us < since_us)
            since_us = state->passes[i].since_us;
    return since_us;
}

static void clear_passes(struct view_progress_state *state)
{
    while (state->pass_count > 0)
        free_pass(&state->passes[--state->pass_count]);
}

status view_state_add_pass(struct view_progress_state *state, enum view_pass_kind kind, bytes from,
                           bytes to, int64_t since_us)
{
    static const bytes all = {0};
    bool are_too_many = state->pass_count == VIEW_MOST_PASSES;
    struct view_pass pass = {.kind = are_too_many ? VIEW_PASS_ALL : kind, .since_us = since_us};
    bool is_whole = pass.kind == VIEW_PASS_ALL;
    TRY(make_pass(&pass, is_whole ? all : from, is_whole ? all : to));
    if (is_whole) { /* it does what they would have done */
        pass.since_us = oldest(state, since_us);
        clear_passes(state);
    }
    state->passes[state->pass_count++] = pass;
    return status_ok();
}

status view_state_advance(struct view_progress_state *state, bytes next)
{
    struct buffer *to = &state->passes[0].next;
    buffer_clear(to);
    buffer_append_bytes(to, next);
    return to->failed ? status_out_of_memory() : status_ok();
}

void view_state_end_pass(struct view_progress_state *state)
{
    free_pass(&state->passes[0]);
    state->pass_count--;
    memmove(&state->passes[0], &state->passes[1], state->pass_count * sizeof state->passes[0]);
    state->passes[state->pass_count] = (struct view_pass){0};
}

bool view_state_has_whole_pass(const struct view_progress_state *state, bytes *next)
{
    for (size_t i = 0; i < state->pass_count; i++)
        if (state->passes[i].kind == VIEW_PASS_ALL) {
            *next = buffer_bytes(&state->passes[i].next);
            return true;
        }
    return false;
}

/* --- the record --- */

static void append_sized(struct buffer *out, const struct buffer *part)
{
    buffer_append_varint(out, part->size);
    buffer_append_bytes(out, buffer_bytes(part));
}

void view_state_write(const struct view_progress_state *state, struct buffer *out)
{
    buffer_append_byte(out, FORM);
    buffer_append(out, &state->print, sizeof state->print);
    buffer_append_varint(out, state->position.sequence);
    buffer_append_varint(out, state->position.ordinal);
    buffer_append_varint(out, state->was_ready);
    buffer_append_varint(out, state->user_errors);
    buffer_append_varint(out, state->excluded_rows);
    buffer_append_varint(out, state->excluded_groups);
    buffer_append_varint(out, state->pass_count);
    for (size_t i = 0; i < state->pass_count; i++) {
        buffer_append_varint(out, state->passes[i].kind);
        buffer_append_varint(out, (uint64_t)state->passes[i].since_us);
        buffer_append_varint(out, state->passes[i].rows);
        append_sized(out, &state->passes[i].next);
        append_sized(out, &state->passes[i].to);
    }
}

struct reader {
    const uint8_t *at; /* NULL: it has failed */
    const uint8_t *end;
};

static uint64_t read_number(struct reader *reader)
{
    uint64_t number = 0;
    if (reader->at != NULL)
        reader->at = varint_read(reader->at, reader->end, &number);
    return reader->at == NULL ? 0 : number;
}

static bytes read_sized(struct reader *reader)
{
    uint64_t size = read_number(reader);
    if (reader->at == NULL || size > (uint64_t)(reader->end - reader->at)) {
        reader->at = NULL;
        return bytes_make(NULL, 0);
    }
    bytes part = bytes_make(reader->at, (size_t)size);
    reader->at += size;
    return part;
}

static status bad_state(void)
{
    return status_make(STATUS_DATA_LOSS, "The record of a view's state is none.");
}

static status read_pass(struct reader *reader, struct view_progress_state *out)
{
    uint64_t kind = read_number(reader);
    struct view_pass pass = {.kind = (enum view_pass_kind)kind};
    pass.since_us = (int64_t)read_number(reader);
    pass.rows = read_number(reader);
    bytes next = read_sized(reader), to = read_sized(reader);
    if (reader->at == NULL || kind > VIEW_PASS_DROPPED)
        return bad_state();
    TRY(make_pass(&pass, next, to));
    out->passes[out->pass_count++] = pass;
    return status_ok();
}

static status read_all(struct reader *reader, struct view_progress_state *out)
{
    out->position.sequence = read_number(reader);
    out->position.ordinal = (uint32_t)read_number(reader);
    out->was_ready = read_number(reader) != 0;
    out->user_errors = read_number(reader);
    out->excluded_rows = read_number(reader);
    out->excluded_groups = read_number(reader);
    uint64_t passes = read_number(reader);
    if (reader->at == NULL || passes > VIEW_MOST_PASSES)
        return bad_state();
    for (uint64_t i = 0; i < passes; i++)
        TRY(read_pass(reader, out));
    return reader->at == reader->end ? status_ok() : bad_state();
}

status view_state_read(bytes value, struct view_progress_state *out)
{
    enum { HEAD = 1 + sizeof out->print };
    *out = (struct view_progress_state){0};
    if (value.size < HEAD || value.data[0] != FORM)
        return bad_state();
    memcpy(&out->print, value.data + 1, sizeof out->print);
    struct reader reader = {value.data + HEAD, value.data + value.size};
    status s = read_all(&reader, out);
    if (!status_is_ok(s))
        view_state_free(out);
    return s;
}
