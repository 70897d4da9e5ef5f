/* Values in keys that cannot be told apart: nothing stands between them, each writer puts something
 * else there, or what stands there stands within values, too. */
#include "advisor/key_parts.h"
#include "advisor/key_start.h"

#include <ctype.h>
#include <stdlib.h>

/* --- each key with another delimiter --- */

static uint8_t first_delimiter(bytes key)
{
    for (size_t i = 0; i < key.size; i++)
        if (is_one_of(key.data[i], KEY_DELIMITERS))
            return key.data[i];
    return 0;
}

/* Whether it has no other. */
static bool is_only_one(bytes key, uint8_t delimiter)
{
    for (size_t i = 0; i < key.size; i++)
        if (key.data[i] != delimiter && is_one_of(key.data[i], KEY_DELIMITERS))
            return false;
    return true;
}

static status tell_several(struct advisor *advisor, const size_t counts[UINT8_MAX + 1],
                           bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    char usual[sizeof KEY_DELIMITERS] = "";
    size_t used = 0;
    for (const char *c = KEY_DELIMITERS; *c != '\0'; c++)
        if (counts[(uint8_t)*c] * 100 >= seen->row_count * DELIMITER_PERCENT)
            usual[used++] = *c;
    *is_found = used > 1;
    if (!*is_found)
        return status_ok();
    TRY(advise(advisor, RULE_key_delimiters, &finding,
               "Sampled keys have each one delimiter, but not the same: %zu of %zu have %c, and "
               "%zu have %c.",
               counts[(uint8_t)usual[0]], seen->row_count, usual[0], counts[(uint8_t)usual[1]],
               usual[1]));
    for (size_t i = 0; i < seen->row_count && finding->better_count < ADVICE_KEYS_SHOWN; i++) {
        bytes key = seen->rows[i * 37 % seen->row_count].key;
        struct buffer text = {0};
        bytes better;
        if (first_delimiter(key) == 0 || first_delimiter(key) == '#')
            continue;
        for (size_t at = 0; at < key.size; at++)
            buffer_append_byte(&text, is_one_of(key.data[at], KEY_DELIMITERS) ? '#' : key.data[at]);
        TRY(keep_text(advisor, &text, &better));
        finding_add_key(finding, key);
        finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status look_for_several(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    size_t counts[UINT8_MAX + 1] = {0}, with_one = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        uint8_t delimiter = first_delimiter(seen->rows[i].key);
        bool is_one = delimiter != 0 && is_only_one(seen->rows[i].key, delimiter);
        counts[delimiter] += is_one;
        with_one += is_one;
    }
    *is_found = false;
    return key_start_fits(with_one, seen->row_count) ? tell_several(advisor, counts, is_found)
                                                     : status_ok();
}

/* --- several delimiters, in one order here and in another there --- */

enum { MARKS_MOST = 8, MARKED_WORDS_MOST = 20 };

/* The delimiters of a key, whatever they are, in their order. */
struct marks {
    uint8_t all[MARKS_MOST];
    size_t places[MARKS_MOST + 1]; /* where each is, and the key's end */
    size_t count;                  /* MARKS_MOST + 1: there are more */
};

static void find_marks(bytes key, struct marks *out)
{
    out->count = 0;
    for (size_t i = 0; i < key.size && out->count <= MARKS_MOST; i++) {
        if (!is_one_of(key.data[i], KEY_DELIMITERS))
            continue;
        if (out->count < MARKS_MOST) {
            out->all[out->count] = key.data[i];
            out->places[out->count] = i;
        }
        out->count++;
    }
    out->places[out->count < MARKS_MOST ? out->count : MARKS_MOST] = key.size;
}

/* How many most keys have; 0: they have not as many, or one. */
static size_t usual_marks(const struct advice_observations *seen)
{
    size_t counts[MARKS_MOST + 2] = {0};
    struct marks marks;
    for (size_t i = 0; i < seen->row_count; i++) {
        find_marks(seen->rows[i].key, &marks);
        counts[marks.count]++;
    }
    for (size_t count = 2; count <= MARKS_MOST; count++)
        if (key_start_fits(counts[count], seen->row_count))
            return count;
    return 0;
}

/* The first place at which two delimiters, or more, are usual, and these; `count`: there is none.
 */
static size_t place_that_differs(const struct advice_observations *seen, size_t count,
                                 char usual[sizeof KEY_DELIMITERS])
{
    uint32_t counts[MARKS_MOST][UINT8_MAX + 1] = {{0}};
    struct marks marks;
    for (size_t i = 0; i < seen->row_count; i++) {
        find_marks(seen->rows[i].key, &marks);
        for (size_t place = 0; marks.count == count && place < count; place++)
            counts[place][marks.all[place]]++;
    }
    for (size_t place = 0; place < count; place++) {
        size_t used = 0;
        for (const char *c = KEY_DELIMITERS; *c != '\0'; c++)
            if (counts[place][(uint8_t)*c] * 100 >= seen->row_count * DELIMITER_PERCENT)
                usual[used++] = *c;
        if (used > 1)
            return place;
    }
    return count;
}

/* Keys of one word in a certain part, and the delimiters that the first of them has. */
struct marked_word {
    bytes word;
    uint8_t marks[MARKS_MOST];
};

/* Whether one of few words in that part says which delimiters there are: each kind of rows has its
 * own. */
static bool says_which(const struct advice_observations *seen, size_t count, size_t part)
{
    struct marked_word words[MARKED_WORDS_MOST];
    struct marks marks;
    size_t used = 0, alike = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        bytes key = seen->rows[i].key;
        find_marks(key, &marks);
        if (marks.count != count)
            continue;
        size_t start = part == 0 ? 0 : marks.places[part - 1] + 1, at = 0;
        bytes word = bytes_make(key.data + start, marks.places[part] - start);
        while (at < used && !bytes_equal(words[at].word, word))
            at++;
        if (at == MARKED_WORDS_MOST)
            return false;
        if (at == used) {
            words[used].word = word;
            memcpy(words[used++].marks, marks.all, sizeof marks.all);
        }
        alike += memcmp(words[at].marks, marks.all, count) == 0;
    }
    return alike * 100 >= seen->row_count * KINDS_PERCENT;
}

static status tell_mixed(struct advisor *advisor, size_t place, const char *usual)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    TRY(advise(advisor, RULE_key_delimiters, &finding,
               "Sampled keys have as many delimiters, but not the same: behind part %zu some have "
               "%c and some %c, and none of the parts says which.",
               place + 1, usual[0], usual[1]));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(seen, i)->key, better;
        struct buffer text = {0};
        for (size_t at = 0; at < key.size; at++)
            buffer_append_byte(&text, is_one_of(key.data[at], KEY_DELIMITERS) ? '#' : key.data[at]);
        TRY(keep_text(advisor, &text, &better));
        finding_add_key(finding, key);
        if (!bytes_equal(key, better))
            finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status look_for_mixed(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    char usual[sizeof KEY_DELIMITERS];
    size_t count = usual_marks(seen), place = place_that_differs(seen, count, usual);
    *is_found = place < count;
    for (size_t part = 0; part <= count && *is_found; part++)
        *is_found = !says_which(seen, count, part);
    return *is_found ? tell_mixed(advisor, place, usual) : status_ok();
}

/* --- the delimiter within values --- */

enum { PARTS_MOST = 8, WORDS_MOST = 20 };

/* Keys of one word in a certain part. */
struct word {
    bytes word;
    size_t of[PARTS_MOST + 1]; /* how many of them have so many parts */
};

static struct word *word_of(struct word *words, size_t *count, bytes word)
{
    for (size_t i = 0; i < *count; i++)
        if (bytes_equal(words[i].word, word))
            return &words[i];
    if (*count == WORDS_MOST)
        return NULL;
    words[*count] = (struct word){.word = word};
    return &words[(*count)++];
}

/* Whether one of few words in that part says how many parts there are: a table of several kinds of
 * rows, each of which has its own. */
static bool says_how_many(const struct key_parts *parts, size_t part)
{
    struct word words[WORDS_MOST];
    size_t count = 0, usual = 0;
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        bytes key = parts->seen->rows[i].key;
        size_t of_key = key_parts_of(parts, key);
        struct word *word = word_of(words, &count, key_part(parts, key, part));
        if (word == NULL)
            return false;
        word->of[of_key < PARTS_MOST ? of_key : PARTS_MOST]++;
    }
    for (size_t i = 0; i < count; i++) {
        size_t most = 0;
        for (size_t of = 0; of <= PARTS_MOST; of++)
            most = words[i].of[of] > most ? words[i].of[of] : most;
        usual += most;
    }
    return usual * 100 >= parts->seen->row_count * KINDS_PERCENT;
}

/* Paths have as many parts as they have, and clocks have colons. */
static status look_within_values(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    struct key_parts parts;
    size_t counts[PARTS_MOST + 1] = {0}, usual = 0;
    *is_found = false;
    key_parts_find(seen, &parts);
    if (parts.delimiter == 0 || parts.delimiter == '/' || parts.delimiter == ':')
        return status_ok();
    for (size_t i = 0; i < seen->row_count; i++) {
        size_t count = key_parts_of(&parts, seen->rows[i].key);
        counts[count < PARTS_MOST ? count : PARTS_MOST]++;
    }
    for (size_t of = 1; of <= PARTS_MOST; of++)
        usual += counts[of] * 100 >= seen->row_count * DELIMITER_PERCENT;
    bool is_kind = usual < 2;
    for (size_t part = 0; part < PARTS_MOST && !is_kind; part++)
        is_kind = says_how_many(&parts, part);
    *is_found = !is_kind;
    if (is_kind)
        return status_ok();
    TRY(advise(advisor, RULE_key_delimiters, &finding,
               "Of %zu sampled keys with the delimiter %c, %zu have %zu parts and the others more "
               "or fewer, and none of the parts says which: it stands within values, too.",
               seen->row_count, parts.delimiter, parts.fitting, parts.count));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++)
        finding_add_key(finding, row_to_show(seen, i)->key);
    return status_ok();
}

/* --- nothing between values --- */

/* The value that most have, by a majority's vote: more than half have it if any value is so
 * frequent. */
struct majority {
    size_t value;
    size_t votes;
};

/* Four letters with letters on both sides, somewhere in a key. */
enum { GRAM = 4, BITS = 14, GRAMS = 1 << BITS };

struct gram {
    uint32_t text;
    uint32_t last_row; /* and one: 0 is none */
    size_t keys;
    struct majority before; /* the letter before it */
    struct majority at;     /* where in the key it is */
};

static void vote(struct majority *majority, size_t value)
{
    if (majority->votes == 0)
        majority->value = value;
    majority->votes = majority->value == value ? majority->votes + 1 : majority->votes - 1;
}

static struct gram *gram_of(struct gram *grams, uint32_t text)
{
    uint32_t at = text * 2654435761U >> (32 - BITS);
    for (size_t i = 0; i < GRAMS; i++, at = (at + 1) % GRAMS)
        if (grams[at].keys == 0 || grams[at].text == text) {
            grams[at].text = text;
            return &grams[at];
        }
    return NULL;
}

/* The letters at that place of the key; 0: they are none, or not between letters. */
static uint32_t letters_at(bytes key, size_t at)
{
    uint32_t text = 0;
    if (at == 0 || at + GRAM >= key.size || !isalpha(key.data[at - 1]) ||
        !isalpha(key.data[at + GRAM]))
        return 0;
    for (size_t i = 0; i < GRAM; i++) {
        if (!isalpha(key.data[at + i]))
            return 0;
        text = text << 8 | key.data[at + i];
    }
    return text;
}

static void count_grams(const struct advice_observations *seen, struct gram *grams)
{
    for (size_t i = 0; i < seen->row_count; i++)
        for (size_t at = 1; at + GRAM < seen->rows[i].key.size; at++) {
            uint32_t text = letters_at(seen->rows[i].key, at);
            struct gram *gram = text == 0 ? NULL : gram_of(grams, text);
            if (gram == NULL || gram->last_row == i + 1)
                continue;
            gram->last_row = (uint32_t)i + 1;
            gram->keys++;
            vote(&gram->before, seen->rows[i].key.data[at - 1]);
            vote(&gram->at, at);
        }
}

/* Letters that a tenth of the keys have, here and there, behind others that differ: the start of a
 * word. */
static bool is_word(const struct gram *gram, size_t rows)
{
    return gram != NULL && gram->keys * 100 >= rows * WORD_PERCENT &&
           gram->before.votes * 2 < gram->keys && gram->at.votes * 2 < gram->keys;
}

static size_t count_composed(const struct advice_observations *seen, struct gram *grams)
{
    size_t composed = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        bool has_word = false;
        for (size_t at = 1; at + GRAM < seen->rows[i].key.size && !has_word; at++) {
            uint32_t text = letters_at(seen->rows[i].key, at);
            has_word = text != 0 && is_word(gram_of(grams, text), seen->row_count);
        }
        composed += has_word;
    }
    return composed;
}

static status look_for_none(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    struct key_parts parts;
    *is_found = false;
    key_parts_find(seen, &parts);
    if (parts.delimiter != 0)
        return status_ok();
    struct gram *grams = arena_zalloc(advisor->arena, GRAMS * sizeof *grams);
    if (grams == NULL)
        return status_out_of_memory();
    count_grams(seen, grams);
    size_t composed = count_composed(seen, grams);
    *is_found = composed * 100 >= seen->row_count * COMPOSED_PERCENT;
    if (!*is_found)
        return status_ok();
    TRY(advise(advisor, RULE_key_delimiters, &finding,
               "%zu of %zu sampled keys have one of a few words in their middle, behind different "
               "letters and with nothing between.",
               composed, seen->row_count));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++)
        finding_add_key(finding, row_to_show(seen, i)->key);
    return status_ok();
}

status advise_on_delimiters(struct advisor *advisor)
{
    bool is_found;
    if (advisor->seen->row_count < KEYS_PREFIX_LEAST)
        return status_ok();
    TRY(look_for_several(advisor, &is_found));
    if (!is_found)
        TRY(look_for_mixed(advisor, &is_found));
    if (!is_found)
        TRY(look_within_values(advisor, &is_found));
    return is_found ? status_ok() : look_for_none(advisor, &is_found);
}
