/* Numbers in keys that are not padded, so that 10 comes before 9.
 *
 * Looked for are numbers at the same place of the same part of nearly all keys, behind the same
 * text or one of a few, of different widths, and never with a zero in front. What has a point and
 * as many digits behind it everywhere is a fraction, such as a degree of latitude. */
#include "advisor/key_parts.h"
#include "advisor/key_start.h"

#include <ctype.h>

enum { NUMBERS_MOST = 8, SHAPES_MOST = 8, WIDTH_MOST = 15 };

/* A run of digits: a number within a part. */
struct run {
    size_t start;
    size_t size;
};

static size_t find_runs(bytes part, struct run runs[NUMBERS_MOST])
{
    size_t count = 0;
    for (size_t at = 0; at < part.size && count < NUMBERS_MOST;) {
        size_t start = at;
        while (at < part.size && isdigit(part.data[at]))
            at++;
        if (at > start)
            runs[count++] = (struct run){start, at - start};
        else
            at++;
    }
    return count;
}

struct widths {
    size_t zeros; /* keys that have a zero in front of the number */
    size_t of[WIDTH_MOST + 1];
    size_t most;
};

/* Parts of keys that are alike but for the digits of their numbers. */
struct shape {
    bytes first; /* one of them */
    struct run runs[NUMBERS_MOST];
    size_t numbers;
    size_t keys;
    struct widths widths[NUMBERS_MOST];
    bool is_unpadded[NUMBERS_MOST];
};

/* What the keys have in one part. */
struct shapes {
    struct shape all[SHAPES_MOST];
    size_t count;
    size_t unpadded; /* keys of which a number is */
};

/* What stands before the number, or behind the last. */
static bytes text_before(bytes part, const struct run *runs, size_t count, size_t number)
{
    size_t start = number == 0 ? 0 : runs[number - 1].start + runs[number - 1].size;
    size_t end = number < count ? runs[number].start : part.size;
    return bytes_make(part.data + start, end - start);
}

static bool has_shape(bytes part, const struct run *runs, size_t count, const struct shape *shape)
{
    if (count != shape->numbers)
        return false;
    for (size_t i = 0; i <= count; i++)
        if (!bytes_equal(text_before(part, runs, count, i),
                         text_before(shape->first, shape->runs, count, i)))
            return false;
    return true;
}

static struct shape *find_shape(struct shapes *shapes, bytes part, const struct run *runs,
                                size_t count)
{
    for (size_t i = 0; i < shapes->count; i++)
        if (has_shape(part, runs, count, &shapes->all[i]))
            return &shapes->all[i];
    return NULL;
}

/* NULL if there are too many already. */
static struct shape *shape_of(struct shapes *shapes, bytes part, const struct run *runs,
                              size_t count)
{
    struct shape *shape = find_shape(shapes, part, runs, count);
    if (shape != NULL || shapes->count == SHAPES_MOST)
        return shape;
    shape = &shapes->all[shapes->count++];
    shape->first = part;
    shape->numbers = count;
    memcpy(shape->runs, runs, count * sizeof *runs);
    return shape;
}

static void count_width(struct widths *out, bytes part, const struct run *run)
{
    size_t width = run->size < WIDTH_MOST ? run->size : WIDTH_MOST;
    out->zeros += run->size > 1 && part.data[run->start] == '0';
    out->of[width]++;
    out->most = width > out->most ? width : out->most;
}

static void count_shapes(const struct key_parts *parts, size_t part, struct shapes *out)
{
    struct run runs[NUMBERS_MOST];
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        if (!key_parts_fit(parts, i))
            continue;
        bytes text = key_part(parts, parts->seen->rows[i].key, part);
        size_t count = find_runs(text, runs);
        struct shape *shape = shape_of(out, text, runs, count);
        if (shape == NULL)
            continue;
        shape->keys++;
        for (size_t number = 0; number < count; number++)
            count_width(&shape->widths[number], text, &runs[number]);
    }
}

static bool is_point(const struct shape *shape, size_t number)
{
    return number > 0 && number < shape->numbers &&
           bytes_equal(text_before(shape->first, shape->runs, shape->numbers, number),
                       bytes_of("."));
}

/* Whether the digits behind the number's point are as many everywhere, and no other point follows,
 * or stands before it, as in addresses and versions. */
static bool is_fraction(const struct shape *shape, size_t number)
{
    enum { DIGITS_LEAST = 2 };
    if (!is_point(shape, number + 1) || is_point(shape, number) || is_point(shape, number + 2))
        return false;
    const struct widths *behind = &shape->widths[number + 1];
    return behind->most >= DIGITS_LEAST && behind->of[behind->most] == shape->keys;
}

/* Whether a twentieth or more have another width than most, and none begins with a zero. */
static bool is_unpadded(const struct shape *shape, size_t number)
{
    const struct widths *widths = &shape->widths[number];
    size_t usual = 0;
    for (size_t width = 1; width <= WIDTH_MOST; width++)
        usual = widths->of[width] > usual ? widths->of[width] : usual;
    return widths->zeros == 0 && shape->keys >= KEYS_LEAST &&
           (shape->keys - usual) * 100 >= shape->keys * WIDTHS_PERCENT &&
           !is_fraction(shape, number);
}

static void judge_shapes(struct shapes *shapes)
{
    for (size_t i = 0; i < shapes->count; i++) {
        struct shape *shape = &shapes->all[i];
        bool is_any = false;
        for (size_t number = 0; number < shape->numbers; number++) {
            shape->is_unpadded[number] = is_unpadded(shape, number);
            is_any |= shape->is_unpadded[number];
        }
        shapes->unpadded += is_any ? shape->keys : 0;
    }
}

/* Of each part; those of which too few keys have an unpadded number are of no account. */
static status find_shapes(struct advisor *advisor, const struct key_parts *parts,
                          struct shapes **out, size_t *found)
{
    *found = 0;
    *out = arena_zalloc(advisor->arena, parts->count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t part = 0; part < parts->count; part++) {
        struct shapes *shapes = &(*out)[part];
        count_shapes(parts, part, shapes);
        judge_shapes(shapes);
        if (shapes->unpadded < KEYS_PREFIX_LEAST ||
            !key_start_fits(shapes->unpadded, parts->seen->row_count))
            shapes->unpadded = 0;
        *found += shapes->unpadded > 0;
    }
    return status_ok();
}

/* --- what is told --- */

static void pad_part(struct shapes *shapes, bytes part, struct buffer *out)
{
    struct run runs[NUMBERS_MOST];
    size_t count = find_runs(part, runs), from = 0;
    const struct shape *shape = shapes->unpadded > 0 ? find_shape(shapes, part, runs, count) : NULL;
    for (size_t number = 0; shape != NULL && number < count; number++) {
        size_t start = runs[number].start;
        buffer_append(out, part.data + from, start - from);
        for (size_t i = runs[number].size;
             shape->is_unpadded[number] && i < shape->widths[number].most; i++)
            buffer_append_byte(out, '0');
        from = start;
    }
    buffer_append_bytes(out, bytes_from(part, from));
}

/* The key with zeroes before each such number; empty if it needs none. */
static status pad(struct advisor *advisor, const struct key_parts *parts, struct shapes *shapes,
                  size_t row, bytes *out)
{
    struct buffer text = {0};
    bytes key = parts->seen->rows[row].key;
    *out = bytes_make(NULL, 0);
    if (!key_parts_fit(parts, row))
        return status_ok();
    for (size_t part = 0; part < parts->count; part++) {
        if (part > 0)
            buffer_append_byte(&text, parts->delimiter);
        pad_part(&shapes[part], key_part(parts, key, part), &text);
    }
    if (text.failed || text.size > key.size)
        return keep_text(advisor, &text, out);
    buffer_free(&text);
    return status_ok();
}

/* Adds keys whose numbers are shorter than others. */
static status add_keys(struct advisor *advisor, const struct key_parts *parts,
                       struct shapes *shapes, struct advice_finding *finding)
{
    const struct advice_observations *seen = parts->seen;
    for (size_t i = 0; i < seen->row_count && finding->key_count < ADVICE_KEYS_SHOWN; i++) {
        size_t row = (i * 37) % seen->row_count;
        bytes better;
        TRY(pad(advisor, parts, shapes, row, &better));
        if (better.size == 0)
            continue;
        finding_add_key(finding, seen->rows[row].key);
        finding_add_better(finding, seen->rows[row].key, better);
    }
    return status_ok();
}

/* "part 1", or "parts 1, 2 and 4". */
static void write_parts(const struct shapes *shapes, size_t count, size_t found, struct buffer *out)
{
    size_t written = 0;
    buffer_append_format(out, "part%s ", found > 1 ? "s" : "");
    for (size_t part = 0; part < count; part++) {
        if (shapes[part].unpadded == 0)
            continue;
        const char *gap = written == 0 ? "" : written + 1 == found ? " and " : ", ";
        buffer_append_format(out, "%s%zu", gap, part + 1);
        written++;
    }
}

/* Of all such numbers: the most digits, and how many keys have one of one digit. */
static void sum_up(const struct shapes *shapes, size_t *most, size_t *of_one)
{
    for (size_t i = 0; i < shapes->count && shapes->unpadded > 0; i++)
        for (size_t number = 0; number < shapes->all[i].numbers; number++) {
            const struct widths *widths = &shapes->all[i].widths[number];
            if (!shapes->all[i].is_unpadded[number])
                continue;
            *most = widths->most > *most ? widths->most : *most;
            *of_one = widths->of[1] > *of_one ? widths->of[1] : *of_one;
        }
}

status advise_on_padding(struct advisor *advisor)
{
    struct advice_finding *finding;
    struct key_parts parts;
    struct shapes *shapes;
    struct buffer where = {0};
    bytes words;
    size_t found, keys = 0, most = 0, of_one = 0;
    key_parts_find(advisor->seen, &parts);
    if (!key_start_fits(parts.fitting, advisor->seen->row_count))
        return status_ok();
    TRY(find_shapes(advisor, &parts, &shapes, &found));
    if (found == 0)
        return status_ok();
    for (size_t part = 0; part < parts.count; part++) {
        keys = shapes[part].unpadded > keys ? shapes[part].unpadded : keys;
        sum_up(&shapes[part], &most, &of_one);
    }
    write_parts(shapes, parts.count, found, &where);
    TRY(keep_text(advisor, &where, &words));
    TRY(advise(advisor, RULE_key_padding, &finding,
               "%zu of %zu sampled keys have a number in their %.*s, of up to %zu digits and "
               "never with a zero in front; %zu have one digit.",
               keys, advisor->seen->row_count, (int)words.size, words.data, most, of_one));
    return add_keys(advisor, &parts, shapes, finding);
}
