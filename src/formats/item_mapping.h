/* How items become rows, as a file of the user's says it: JSON.
 *
 *     {"row_key": "{PK}",                        templates: item_template.h
 *      "strip_prefix": {"PK": "Invoice-"},
 *      "families": {"Payment": {"max_versions": 1, "max_age": "90d"}},
 *      "items": [
 *        {"where": {"SK": "Payment-*"},          the first rule that fits an item is its
 *         "family": "Payment",
 *         "timestamp": "DateCreated",
 *         "columns": {"Amount": "counter", "Note": "drop"},
 *         "others": {"qualifier": "{SK}", "as": "json"}}]}
 *
 * What a rule may say may stand outside of the rules, too, and holds for those that do not say it;
 * without "items" there is one rule, for all. docs/reference/import.md has each name.
 *
 * Items of several rules may become one row. Nothing gets lost by that as long as their cells are
 * not the same ones, which the author of the file has to watch. */
#ifndef TRESTLE_FORMATS_ITEM_MAPPING_H
#define TRESTLE_FORMATS_ITEM_MAPPING_H

#include "formats/change.h"
#include "formats/family.h"
#include "formats/item_template.h"

enum item_column_form {
    ITEM_COLUMN_TEXT,
    ITEM_COLUMN_COUNTER,
    ITEM_COLUMN_JSON,
    ITEM_COLUMN_TYPED, /* DynamoDB's JSON */
    ITEM_COLUMN_FAMILY,
    ITEM_COLUMN_VERSIONS,
    ITEM_COLUMN_DROP,
};

struct item_column {
    bytes attribute; /* of `together` none */
    enum item_column_form form;
    const char *family; /* NULL: the rule's; of ITEM_COLUMN_FAMILY the attribute's name */
    struct item_template qualifier; /* no parts: the attribute's name */
    const char *timestamp;          /* NULL: as the rule says */
};

struct item_condition {
    bytes attribute;
    bytes pattern; /* '*' stands for any bytes */
};

enum item_others { ITEM_OTHERS_AS_COLUMNS, ITEM_OTHERS_DROPPED, ITEM_OTHERS_TOGETHER };

struct item_rule {
    struct item_condition *conditions;
    size_t condition_count;
    struct item_template row_key;
    struct item_prefixes prefixes;
    const char *family;
    const char *timestamp;  /* an attribute; NULL: the default */
    const char *ttl;        /* an attribute; NULL: none */
    const char *ttl_family; /* of items that have it; NULL: as the rest says */
    struct item_column *columns;
    size_t column_count;
    enum item_others others;
    struct item_column together;
};

struct item_mapping {
    struct item_rule *rules; /* one at least */
    size_t rule_count;
    bool has_items;               /* several items may become one row */
    unsigned salts;               /* 0: none */
    struct move_family *families; /* all that rules name; of attributes' own, those too */
    size_t family_count;
};

/* Parses the file. All is the arena's. INVALID_ARGUMENT names file, place and what is wrong
 * there. */
status item_mapping_parse(const char *path, bytes text, struct arena *arena,
                          struct item_mapping *out);

/* Fails as item_lay_out. `default_us`: of cells whose items do not say when. */
status item_map(const struct item_mapping *mapping, const struct item_value *item,
                int64_t default_us, int64_t now_us, struct arena *arena, struct move_change *out);

#endif
