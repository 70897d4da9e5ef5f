/* See usage_state.h. */
#include "cluster/usage_state.h"

#include "base/varint.h"

enum { FORM = 1 };

/* --- texts --- */

void usage_text_set(struct usage_text *text, bytes from)
{
    text->size = (uint8_t)(from.size < USAGE_TEXT_BYTES ? from.size : USAGE_TEXT_BYTES);
    if (text->size > 0)
        memcpy(text->data, from.data, text->size);
}

bytes usage_text_get(const struct usage_text *text)
{
    return bytes_make(text->data, text->size);
}

static bool is_text(const struct usage_text *text, bytes other)
{
    if (other.size > USAGE_TEXT_BYTES)
        other.size = USAGE_TEXT_BYTES;
    return bytes_equal(usage_text_get(text), other);
}

/* --- scans --- */

/* The last entry has those for which there is none. */
static struct usage_scans *scans_of(struct usage_state *state, uint8_t kind, bytes profile)
{
    for (size_t i = 0; i < state->scan_count; i++)
        if (state->scans[i].kind == kind && is_text(&state->scans[i].profile, profile))
            return &state->scans[i];
    if (state->scan_count == USAGE_SCANS)
        return &state->scans[USAGE_SCANS - 1];
    struct usage_scans *scans = &state->scans[state->scan_count++];
    *scans = (struct usage_scans){.kind = kind};
    usage_text_set(&scans->profile, profile);
    return scans;
}

void usage_add_scan(struct usage_state *state, const struct usage_scan *scan)
{
    struct usage_scans *scans = scans_of(state, (uint8_t)scan->kind, scan->profile);
    scans->scans++;
    scans->whole += scan->is_whole;
    scans->seen += scan->seen;
    scans->answered += scan->answered;
    scans->whole_seen += scan->is_whole ? scan->seen : 0;
    usage_text_set(&scans->start, scan->start);
    usage_text_set(&scans->end, scan->end);
    usage_text_set(&scans->family, scan->family);
    usage_text_set(&scans->qualifier, scan->qualifier);
}

static void add_scans(struct usage_state *to, const struct usage_scans *from)
{
    struct usage_scans *scans = scans_of(to, from->kind, usage_text_get(&from->profile));
    if (scans->scans == 0) {
        *scans = *from;
        return;
    }
    scans->scans += from->scans;
    scans->whole += from->whole;
    scans->seen += from->seen;
    scans->answered += from->answered;
    scans->whole_seen += from->whole_seen;
}

/* --- columns --- */

void usage_columns_add(struct buffer *out, bytes family, bool has_qualifier, bytes qualifier)
{
    buffer_append_varint(out, family.size);
    buffer_append_bytes(out, family);
    buffer_append_varint(out, has_qualifier ? qualifier.size + 1 : 0);
    if (has_qualifier)
        buffer_append_bytes(out, qualifier);
}

static bool take_number(bytes *from, uint64_t *number)
{
    const uint8_t *next = varint_read(from->data, from->data + from->size, number);
    if (next == NULL)
        return false;
    *from = bytes_from(*from, (size_t)(next - from->data));
    return true;
}

static bool take_bytes(bytes *from, uint64_t size, bytes *out)
{
    if (size > from->size)
        return false;
    *out = bytes_make(from->data, (size_t)size);
    *from = bytes_from(*from, (size_t)size);
    return true;
}

bool usage_columns_next(bytes *columns, bytes *family, bool *has_qualifier, bytes *qualifier)
{
    uint64_t size;
    if (columns->size == 0 || !take_number(columns, &size) || !take_bytes(columns, size, family) ||
        !take_number(columns, &size))
        return false;
    *has_qualifier = size > 0;
    *qualifier = bytes_make(NULL, 0);
    return size == 0 || take_bytes(columns, size - 1, qualifier);
}

static bytes columns_of(const struct usage_column_set *set)
{
    return bytes_make(set->data, set->size);
}

static void drop_empty_sets(struct usage_state *state)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->column_count; i++)
        if (state->columns[i].count > 0)
            state->columns[kept++] = state->columns[i];
    state->column_count = (uint8_t)kept;
}

/* Each set that is there loses as much as the new one has, or as the least of them. */
static uint64_t push_out(struct usage_state *state, uint64_t weight)
{
    uint64_t least = weight;
    for (size_t i = 0; i < state->column_count; i++)
        if (state->columns[i].count < least)
            least = state->columns[i].count;
    for (size_t i = 0; i < state->column_count; i++)
        state->columns[i].count -= least;
    drop_empty_sets(state);
    return weight - least;
}

void usage_add_columns(struct usage_state *state, bytes columns, uint64_t weight)
{
    if (columns.size > USAGE_COLUMNS_BYTES)
        return;
    for (size_t i = 0; i < state->column_count; i++)
        if (bytes_equal(columns_of(&state->columns[i]), columns)) {
            state->columns[i].count += weight;
            return;
        }
    if (state->column_count == USAGE_COLUMN_SETS)
        weight = push_out(state, weight);
    if (weight == 0 || state->column_count == USAGE_COLUMN_SETS)
        return;
    struct usage_column_set *set = &state->columns[state->column_count++];
    set->count = weight;
    set->size = (uint8_t)columns.size;
    if (columns.size > 0)
        memcpy(set->data, columns.data, columns.size);
}

/* --- favourites --- */

static struct usage_favourite *least_favourite(struct usage_state *state)
{
    struct usage_favourite *least = &state->favourites[0];
    for (size_t i = 1; i < USAGE_FAVOURITES; i++)
        if (state->favourites[i].votes < least->votes)
            least = &state->favourites[i];
    return least;
}

void usage_add_favourite(struct usage_state *state, uint64_t hash, uint64_t weight)
{
    for (size_t i = 0; i < USAGE_FAVOURITES; i++)
        if (state->favourites[i].votes > 0 && state->favourites[i].hash == hash) {
            state->favourites[i].votes += weight;
            return;
        }
    struct usage_favourite *least = least_favourite(state);
    uint64_t lost = least->votes < weight ? least->votes : weight;
    for (size_t i = 0; i < USAGE_FAVOURITES; i++)
        state->favourites[i].votes -= lost;
    if (weight > lost)
        *least = (struct usage_favourite){.hash = hash, .votes = weight - lost};
}

/* --- sums --- */

void usage_state_add(struct usage_state *to, const struct usage_state *from)
{
    if (from->from_us == 0)
        return;
    if (to->from_us == 0 || from->from_us < to->from_us)
        to->from_us = from->from_us;
    for (size_t i = 0; i < USAGE_NUMBERS; i++)
        to->numbers[i] += from->numbers[i];
    for (size_t i = 0; i < USAGE_EXAMPLES; i++)
        if (to->examples[i].size == 0)
            to->examples[i] = from->examples[i];
    for (size_t i = 0; i < from->scan_count; i++)
        add_scans(to, &from->scans[i]);
    for (size_t i = 0; i < from->column_count; i++)
        usage_add_columns(to, columns_of(&from->columns[i]), from->columns[i].count);
    for (size_t i = 0; i < USAGE_FAVOURITES; i++)
        if (from->favourites[i].votes > 0)
            usage_add_favourite(to, from->favourites[i].hash, from->favourites[i].votes);
}

/* --- bytes --- */

static void put_bytes(struct buffer *out, bytes b)
{
    buffer_append_varint(out, b.size);
    buffer_append_bytes(out, b);
}

static void put_text(struct buffer *out, const struct usage_text *text)
{
    put_bytes(out, usage_text_get(text));
}

static void put_scans(struct buffer *out, const struct usage_scans *scans)
{
    buffer_append_varint(out, scans->kind);
    buffer_append_varint(out, scans->scans);
    buffer_append_varint(out, scans->whole);
    buffer_append_varint(out, scans->seen);
    buffer_append_varint(out, scans->answered);
    buffer_append_varint(out, scans->whole_seen);
    put_text(out, &scans->profile);
    put_text(out, &scans->start);
    put_text(out, &scans->end);
    put_text(out, &scans->family);
    put_text(out, &scans->qualifier);
}

void usage_state_encode(const struct usage_state *state, struct buffer *out)
{
    buffer_append_byte(out, FORM);
    buffer_append_varint(out, (uint64_t)state->from_us);
    buffer_append_varint(out, USAGE_NUMBERS);
    for (size_t i = 0; i < USAGE_NUMBERS; i++)
        buffer_append_varint(out, state->numbers[i]);
    buffer_append_varint(out, USAGE_EXAMPLES);
    for (size_t i = 0; i < USAGE_EXAMPLES; i++)
        put_text(out, &state->examples[i]);
    buffer_append_varint(out, state->scan_count);
    for (size_t i = 0; i < state->scan_count; i++)
        put_scans(out, &state->scans[i]);
    buffer_append_varint(out, state->column_count);
    for (size_t i = 0; i < state->column_count; i++) {
        buffer_append_varint(out, state->columns[i].count);
        put_bytes(out, columns_of(&state->columns[i]));
    }
    buffer_append_varint(out, USAGE_FAVOURITES);
    for (size_t i = 0; i < USAGE_FAVOURITES; i++) {
        buffer_append_varint(out, state->favourites[i].hash);
        buffer_append_varint(out, state->favourites[i].votes);
    }
}

static bool take_sized(bytes *from, bytes *out)
{
    uint64_t size;
    return take_number(from, &size) && take_bytes(from, size, out);
}

static bool take_text(bytes *from, struct usage_text *text)
{
    bytes taken;
    if (!take_sized(from, &taken) || taken.size > USAGE_TEXT_BYTES)
        return false;
    usage_text_set(text, taken);
    return true;
}

static bool take_count(bytes *from, size_t most, size_t *count)
{
    uint64_t number;
    if (!take_number(from, &number) || number > most)
        return false;
    *count = (size_t)number;
    return true;
}

static bool take_scans(bytes *from, struct usage_scans *scans)
{
    uint64_t kind;
    if (!take_number(from, &kind) || kind >= USAGE_SCAN_KINDS)
        return false;
    scans->kind = (uint8_t)kind;
    return take_number(from, &scans->scans) && take_number(from, &scans->whole) &&
           take_number(from, &scans->seen) && take_number(from, &scans->answered) &&
           take_number(from, &scans->whole_seen) && take_text(from, &scans->profile) &&
           take_text(from, &scans->start) && take_text(from, &scans->end) &&
           take_text(from, &scans->family) && take_text(from, &scans->qualifier);
}

static bool take_column_set(bytes *from, struct usage_column_set *set)
{
    bytes columns;
    if (!take_number(from, &set->count) || !take_sized(from, &columns) ||
        columns.size > USAGE_COLUMNS_BYTES)
        return false;
    set->size = (uint8_t)columns.size;
    if (columns.size > 0)
        memcpy(set->data, columns.data, columns.size);
    return true;
}

static bool take_head(bytes *from, struct usage_state *out)
{
    uint64_t from_us;
    size_t count;
    if (from->size == 0 || from->data[0] != FORM)
        return false;
    *from = bytes_from(*from, 1);
    if (!take_number(from, &from_us) || !take_count(from, USAGE_NUMBERS, &count))
        return false;
    out->from_us = (int64_t)from_us;
    for (size_t i = 0; i < count; i++)
        if (!take_number(from, &out->numbers[i]))
            return false;
    if (!take_count(from, USAGE_EXAMPLES, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!take_text(from, &out->examples[i]))
            return false;
    return true;
}

static bool take_lists(bytes *from, struct usage_state *out)
{
    size_t count;
    if (!take_count(from, USAGE_SCANS, &count))
        return false;
    for (; out->scan_count < count; out->scan_count++)
        if (!take_scans(from, &out->scans[out->scan_count]))
            return false;
    if (!take_count(from, USAGE_COLUMN_SETS, &count))
        return false;
    for (; out->column_count < count; out->column_count++)
        if (!take_column_set(from, &out->columns[out->column_count]))
            return false;
    if (!take_count(from, USAGE_FAVOURITES, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!take_number(from, &out->favourites[i].hash) ||
            !take_number(from, &out->favourites[i].votes))
            return false;
    return true;
}

bool usage_state_decode(bytes from, struct usage_state *out)
{
    *out = (struct usage_state){0};
    if (take_head(&from, out) && take_lists(&from, out))
        return true;
    *out = (struct usage_state){0};
    return false;
}
