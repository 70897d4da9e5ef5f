/* See heat_record.h. */
#include "heat/heat_record.h"

#include "base/key_range.h"
#include "base/varint.h"

enum { FORMAT = 1, CPU_STEPS = 1000 }; /* of a percent */

enum flag {
    FOLLOWS = 1, /* it begins where the one before ends */
    HAS_NO_END = 2,
    HAS_FAVOURITE = 4,
    HAS_NEWEST = 8,
    ALL_FLAGS = 15,
};

double heat_mean(double first, int64_t first_us, double second, int64_t second_us)
{
    double sum = first * (double)first_us + second * (double)second_us;
    return first_us + second_us > 0 ? sum / (double)(first_us + second_us) : 0;
}

/* --- from counts --- */

static bytes kept_key(const struct heat_key *key)
{
    return bytes_make(key->data, key->size < HEAT_KEY_BYTES ? key->size : HEAT_KEY_BYTES);
}

/* Whether keys of which so many rose were written in order. Of a few that come in none most rise
 * now and then by chance, and there are many ranges where they may. */
static bool has_risen(const struct heat_cell *cell)
{
    enum { LEAST = 8, FEW = 64 };
    uint64_t rising = cell->numbers[HEAT_RISING], writes = cell->numbers[HEAT_WRITES];
    if (cell->writes_seen < LEAST)
        return false;
    return cell->writes_seen < FEW ? 4 * rising >= 3 * writes : 2 * rising >= writes;
}

/* Few votes say nothing. */
static struct heat_sum sum_of(const struct heat_cell *cell)
{
    enum { LEAST_VOTES = 8 /* one in so many */ };
    struct heat_sum sum = {.votes = 0};
    memcpy(sum.numbers, cell->numbers, sizeof sum.numbers);
    uint64_t timed = sum.numbers[HEAT_TIMED_READS] + sum.numbers[HEAT_TIMED_WRITES];
    if (cell->votes > 0 && cell->votes >= timed / LEAST_VOTES) {
        sum.votes = cell->votes;
        sum.favourite = kept_key(&cell->favourite);
    }
    if (has_risen(cell))
        sum.newest = kept_key(&cell->greatest);
    return sum;
}

static bool is_empty(const struct heat_cell *cell)
{
    return cell->numbers[HEAT_READS] == 0 && cell->numbers[HEAT_WRITES] == 0;
}

status heat_record_of(const struct heat_ranges *ranges, const struct heat_cell *cells,
                      struct arena *arena, struct heat_record *out)
{
    size_t count = 0;
    for (size_t i = 0; i < ranges->count; i++)
        count += !is_empty(&cells[i]);
    out->entries = arena_alloc(arena, count * sizeof *out->entries);
    out->count = 0;
    if (out->entries == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < ranges->count; i++)
        if (!is_empty(&cells[i]))
            out->entries[out->count++] = (struct heat_entry){.start = heat_range_start(ranges, i),
                                                             .end = heat_range_end(ranges, i),
                                                             .sum = sum_of(&cells[i])};
    return status_ok();
}

void heat_sum_add(struct heat_sum *to, const struct heat_sum *from)
{
    uint64_t largest = to->numbers[HEAT_LARGEST_ROW];
    for (unsigned i = 0; i < HEAT_NUMBERS; i++)
        to->numbers[i] += from->numbers[i];
    if (largest < from->numbers[HEAT_LARGEST_ROW])
        largest = from->numbers[HEAT_LARGEST_ROW];
    to->numbers[HEAT_LARGEST_ROW] = largest;
    if (bytes_equal(to->favourite, from->favourite)) {
        to->votes += from->votes;
    } else if (to->votes >= from->votes) {
        to->votes -= from->votes;
    } else {
        to->votes = from->votes - to->votes;
        to->favourite = from->favourite;
    }
    if (bytes_compare(from->newest, to->newest) > 0)
        to->newest = from->newest;
}

/* --- writing --- */

/* A key, by what it has in common with the one written before. */
static void put_key(struct buffer *out, bytes *before, bytes key)
{
    size_t shared = 0;
    while (shared < key.size && shared < before->size && key.data[shared] == before->data[shared])
        shared++;
    buffer_append_varint(out, shared);
    buffer_append_varint(out, key.size - shared);
    buffer_append_bytes(out, bytes_from(key, shared));
    *before = key;
}

static uint8_t flags_of(const struct heat_entry *entry, const struct heat_entry *before)
{
    bool follows = before != NULL && before->end.size > 0 && bytes_equal(before->end, entry->start);
    return (uint8_t)((follows ? FOLLOWS : 0) | (entry->end.size == 0 ? HAS_NO_END : 0) |
                     (entry->sum.votes > 0 ? HAS_FAVOURITE : 0) |
                     (entry->sum.newest.size > 0 ? HAS_NEWEST : 0));
}

static void put_entry(struct buffer *out, bytes *key, const struct heat_entry *entry, uint8_t flags)
{
    buffer_append_byte(out, flags);
    if ((flags & FOLLOWS) == 0)
        put_key(out, key, entry->start);
    if ((flags & HAS_NO_END) == 0)
        put_key(out, key, entry->end);
    for (unsigned i = 0; i < HEAT_NUMBERS; i++)
        buffer_append_varint(out, entry->sum.numbers[i]);
    bytes beside = *key; /* these leave it to the next entry's */
    if ((flags & HAS_FAVOURITE) != 0) {
        buffer_append_varint(out, entry->sum.votes);
        put_key(out, &beside, entry->sum.favourite);
    }
    if ((flags & HAS_NEWEST) != 0)
        put_key(out, &beside, entry->sum.newest);
}

void heat_record_encode(const struct heat_record *record, struct buffer *out)
{
    bytes key = bytes_make(NULL, 0);
    buffer_append_byte(out, FORMAT);
    buffer_append_varint(out, (uint64_t)(record->until_us - record->from_us));
    buffer_append_varint(out, (uint64_t)(record->cpu_percent * CPU_STEPS + 0.5));
    buffer_append_varint(out, record->count);
    for (size_t i = 0; i < record->count; i++) {
        const struct heat_entry *before = i == 0 ? NULL : &record->entries[i - 1];
        put_entry(out, &key, &record->entries[i], flags_of(&record->entries[i], before));
    }
}

/* --- reading --- */

struct reading {
    const uint8_t *at;
    const uint8_t *end;
    struct arena *arena;
    bytes key;       /* the last one that was read */
    bool is_damaged; /* also without memory */
};

static uint64_t take_number(struct reading *reading)
{
    uint64_t number = 0;
    const uint8_t *next =
        reading->is_damaged ? NULL : varint_read(reading->at, reading->end, &number);
    if (next == NULL) {
        reading->is_damaged = true;
        return 0;
    }
    reading->at = next;
    return number;
}

static bytes take_key(struct reading *reading, bytes *before)
{
    uint64_t shared = take_number(reading), more = take_number(reading);
    bool fits = !reading->is_damaged && shared <= before->size &&
                more <= (uint64_t)(reading->end - reading->at);
    uint8_t *key = fits ? arena_alloc(reading->arena, shared + more) : NULL;
    if (key == NULL) {
        reading->is_damaged = true;
        return bytes_make(NULL, 0);
    }
    if (shared > 0)
        memcpy(key, before->data, shared);
    if (more > 0)
        memcpy(key + shared, reading->at, more);
    reading->at += more;
    *before = bytes_make(key, shared + more);
    return *before;
}

static uint8_t take_flags(struct reading *reading)
{
    uint64_t flags = take_number(reading);
    if (flags > ALL_FLAGS)
        reading->is_damaged = true;
    return (uint8_t)flags;
}

static void take_entry(struct reading *reading, const struct heat_entry *before,
                       struct heat_entry *entry)
{
    uint8_t flags = take_flags(reading);
    *entry = (struct heat_entry){.start = before == NULL ? bytes_make(NULL, 0) : before->end};
    if ((flags & FOLLOWS) == 0)
        entry->start = take_key(reading, &reading->key);
    if ((flags & HAS_NO_END) == 0)
        entry->end = take_key(reading, &reading->key);
    for (unsigned i = 0; i < HEAT_NUMBERS; i++)
        entry->sum.numbers[i] = take_number(reading);
    bytes beside = reading->key;
    if ((flags & HAS_FAVOURITE) != 0) {
        entry->sum.votes = take_number(reading);
        entry->sum.favourite = take_key(reading, &beside);
    }
    if ((flags & HAS_NEWEST) != 0)
        entry->sum.newest = take_key(reading, &beside);
}

/* Whether it begins at or after the end of the one before, and ends after it begins. */
static bool is_in_order(const struct heat_entry *before, const struct heat_entry *entry)
{
    bool is_behind =
        before == NULL || (before->end.size > 0 && bytes_compare(before->end, entry->start) <= 0);
    return is_behind && (entry->end.size == 0 || bytes_compare(entry->start, entry->end) < 0);
}

static void take_entries(struct reading *reading, struct heat_record *out, size_t count)
{
    for (; out->count < count && !reading->is_damaged; out->count++) {
        struct heat_entry *entry = &out->entries[out->count];
        const struct heat_entry *before = out->count == 0 ? NULL : entry - 1;
        take_entry(reading, before, entry);
        if (!is_in_order(before, entry))
            reading->is_damaged = true;
    }
}

status heat_record_decode(bytes value, int64_t from_us, struct arena *arena,
                          struct heat_record *out)
{
    struct reading reading = {.at = value.data, .end = value.data + value.size, .arena = arena};
    *out = (struct heat_record){.from_us = from_us};
    uint64_t format = take_number(&reading);
    out->until_us = from_us + (int64_t)take_number(&reading);
    out->cpu_percent = (double)take_number(&reading) / CPU_STEPS;
    uint64_t count = take_number(&reading);
    if (reading.is_damaged || format != FORMAT || count > value.size) /* one has a byte at least */
        return status_make(STATUS_DATA_LOSS, "a record of heat does not parse");
    out->entries = arena_alloc(arena, count * sizeof *out->entries);
    if (out->entries == NULL)
        return status_out_of_memory();
    take_entries(&reading, out, count);
    if (reading.is_damaged || reading.at != reading.end)
        return status_make(STATUS_DATA_LOSS, "a record of heat does not parse");
    return status_ok();
}

/* --- where it is --- */

static uint64_t amount(const struct heat_entry *entry, unsigned numbers)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < HEAT_NUMBERS; i++)
        if ((numbers >> i & 1) != 0)
            sum += entry->sum.numbers[i];
    return sum;
}

struct heat_run heat_busiest_run(const struct heat_record *record, size_t first, size_t last,
                                 unsigned numbers, double share)
{
    struct heat_run best = {.first = first, .last = last};
    uint64_t sum = 0;
    for (size_t i = first; i <= last; i++)
        best.total += amount(&record->entries[i], numbers);
    best.sum = best.total;
    uint64_t enough = (uint64_t)((double)best.total * share);
    for (size_t from = first, to = first; to <= last; to++) {
        sum += amount(&record->entries[to], numbers);
        while (from < to && sum - amount(&record->entries[from], numbers) >= enough)
            sum -= amount(&record->entries[from++], numbers);
        if (sum >= enough && to - from < best.last - best.first) {
            best.first = from;
            best.last = to;
            best.sum = sum;
        }
    }
    return best;
}

static bool overlaps(const struct heat_entry *entry, bytes start, bytes end)
{
    return key_ranges_meet(entry->start, entry->end, start, end);
}

void heat_record_narrow(const struct heat_record *record, const struct heat_ranges *ranges,
                        bytes *start, bytes *end)
{
    const unsigned rows = 1u << HEAT_READS | 1u << HEAT_WRITES;
    enum { PART = 4 };
    const double nearly_all = 0.8;
    size_t first = 0, past = record->count;
    while (first < past && !overlaps(&record->entries[first], *start, *end))
        first++;
    while (past > first && !overlaps(&record->entries[past - 1], *start, *end))
        past--;
    size_t from = heat_ranges_find(ranges, *start);
    size_t to = end->size == 0 ? ranges->count - 1 : heat_ranges_find(ranges, *end);
    if (first == past)
        return;
    struct heat_run run = heat_busiest_run(record, first, past - 1, rows, nearly_all);
    const struct heat_entry *begins = &record->entries[run.first];
    const struct heat_entry *ends = &record->entries[run.last];
    size_t width = heat_ranges_find(ranges, ends->start) - heat_ranges_find(ranges, begins->start);
    if (run.sum == 0 || (width + 1) * PART > to - from + 1)
        return;
    if (bytes_compare(begins->start, *start) > 0)
        *start = begins->start;
    if (ends->end.size > 0 && (end->size == 0 || bytes_compare(ends->end, *end) < 0))
        *end = ends->end;
}
