/* See tallies.h. Tallies are found by the fingerprint of their names: open addressing, a quarter of
 * the slots free at least. */
#include "datastore/admin/tallies.h"

enum { FIRST_CAPACITY = 64 };

status ds_tallies_init(struct ds_tallies *tallies, size_t memory)
{
    *tallies = (struct ds_tallies){.arena = arena_create(memory), .capacity = FIRST_CAPACITY};
    if (tallies->arena != NULL)
        tallies->slots = arena_zalloc(tallies->arena, FIRST_CAPACITY * sizeof *tallies->slots);
    if (tallies->slots != NULL)
        return status_ok();
    ds_tallies_free(tallies);
    return status_out_of_memory();
}

void ds_tallies_free(struct ds_tallies *tallies)
{
    arena_destroy(tallies->arena);
    *tallies = (struct ds_tallies){.arena = NULL};
}

static struct fingerprint print_of(const struct ds_tally_name *name)
{
    struct siphash hash;
    const char *const texts[] = {name->name_space, name->kind, name->property, name->type};
    siphash_start(&hash);
    siphash_add(&hash, bytes_make((const uint8_t *)&name->what, sizeof name->what));
    siphash_add(&hash, bytes_make((const uint8_t *)&name->index, sizeof name->index));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        siphash_add(&hash, bytes_make((const uint8_t *)texts[i], strlen(texts[i]) + 1));
    return siphash_finish(&hash);
}

/* The tally's slot, or the one where it would be. */
static struct ds_tally **slot_of(const struct ds_tallies *tallies, struct fingerprint print)
{
    size_t at = print.words[0] & (tallies->capacity - 1);
    while (tallies->slots[at] != NULL && !fingerprint_equal(tallies->slots[at]->print, print))
        at = (at + 1) & (tallies->capacity - 1);
    return &tallies->slots[at];
}

static status grow(struct ds_tallies *tallies)
{
    size_t capacity = 2 * tallies->capacity;
    struct ds_tally **slots = arena_zalloc(tallies->arena, capacity * sizeof(struct ds_tally *));
    if (slots == NULL)
        return status_out_of_memory();
    tallies->slots = slots;
    tallies->capacity = capacity;
    for (struct ds_tally *each = tallies->first; each != NULL; each = each->next)
        *slot_of(tallies, each->print) = each;
    return status_ok();
}

static status copy_text(struct arena *arena, const char **text)
{
    *text = arena_string(arena, bytes_of(*text));
    return *text == NULL ? status_out_of_memory() : status_ok();
}

static status copy_name(struct arena *arena, struct ds_tally_name *name)
{
    TRY(copy_text(arena, &name->name_space));
    TRY(copy_text(arena, &name->kind));
    TRY(copy_text(arena, &name->property));
    return copy_text(arena, &name->type);
}

status ds_tally_find(struct ds_tallies *tallies, const struct ds_tally_name *name,
                     struct ds_tally **out)
{
    struct fingerprint print = print_of(name);
    *out = *slot_of(tallies, print);
    if (*out != NULL)
        return status_ok();
    if (4 * (tallies->count + 1) > 3 * tallies->capacity)
        TRY(grow(tallies));
    struct ds_tally *made = arena_zalloc(tallies->arena, sizeof *made);
    if (made == NULL)
        return status_out_of_memory();
    made->print = print;
    made->name = *name;
    TRY(copy_name(tallies->arena, &made->name));
    made->next = tallies->first;
    tallies->first = made;
    tallies->count++;
    *slot_of(tallies, print) = made;
    *out = made;
    return status_ok();
}
