/* `trestle import dynamodb`: items of an export, or of a table by its endpoint, as rows. */
#include "cmd/command.h"
#include "cmd/transfer/import.h"
#include "formats/item_layout.h"
#include "os/file.h"
#include "transfer/dynamo_source.h"
#include "transfer/live_source.h"

#include <inttypes.h>

#define DELIMITER "#"
#define LIVE      "dynamodb://" /* then the table's name */

enum {
    SETUP_LIMIT = 16 << 20,
    MAPPING_MOST = 4 << 20,
};

enum import_compat { COMPAT_NONE, COMPAT_GOOGLE };

struct import_options {
    struct target_options target;
    struct transfer_options transfer;
    const char *source;
    const char *table;
    const char *partition_key;
    const char *sort_key;
    const char *delimiter;
    const char *family;
    const char *timestamp;
    const char *counters; /* names, joined by commas */
    const char *families;
    const char *mapping; /* a file */
    const char *ttl_attribute;
    const char *ttl_family; /* NAME:AGE */
    int compat;             /* enum import_compat */
    uint64_t salts;
    bool lossless;
    bool ordered_numbers;
    const char *dynamodb_endpoint;
    const char *region;
    uint64_t segments;
    bool consistent_read;
    int follow; /* enum live_follow */
};

/* --- options --- */

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct import_options, member_), .preset = preset_, .unit = unit_,      \
        .sentence = sentence_                                                                      \
    }

#define NUMBER(member_, preset_, most_, unit_, sentence_)                                          \
    {                                                                                              \
        .member = #member_, .kind = OPTION_INTEGER,                                                \
        .offset = offsetof(struct import_options, member_), .preset = preset_, .most = most_,      \
        .unit = unit_, .sentence = sentence_                                                       \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct import_options, target),
    ROW(STRING, table, NULL, "NAME", "The table, which is made if it is not there."),
    ROW(STRING, mapping, NULL, "FILE",
        "A file that says how items become rows, in place of the options from here to "
        "--ttl-family."),
    ROW(STRING, partition_key, NULL, "NAME", "The attribute that row keys begin with."),
    ROW(STRING, sort_key, NULL, "NAME", "The attribute that they end with; by default none."),
    ROW(STRING, delimiter, DELIMITER, "TEXT", "What stands between the two."),
    ROW(BOOLEAN, ordered_numbers, "false", "",
        "Numbers in row keys as bytes that order as they do, instead of text."),
    NUMBER(salts, "0", 1000, "N",
           "Begins row keys with one of N numbers, to spread writes; 0: none."),
    ROW(STRING, family, NULL, "NAME", "The column family; by default item, with --compat cf1."),
    ROW(BOOLEAN, lossless, "false", "",
        "Each attribute in DynamoDB's JSON, so that items can be had back from rows."),
    ROW(ENUM, compat, "none", "none|google", "Rows as Google's utility makes them."),
    ROW(STRING, counters, NULL, "NAMES",
        "Attributes that become integers of 64 bits, joined by commas."),
    ROW(STRING, families, NULL, "NAMES",
        "Sets and maps that become column families, joined by commas."),
    ROW(STRING, timestamp, NULL, "NAME",
        "The attribute that says when: a number of seconds or milliseconds since 1970, or RFC "
        "3339. "
        "The default is the time of the export, else now."),
    ROW(STRING, ttl_attribute, NULL, "NAME",
        "The attribute by which DynamoDB deletes items; those that are over are left out."),
    ROW(STRING, ttl_family, NULL, "NAME:AGE",
        "Where the others lie that have it: a family that keeps cells for AGE (30d, 12h), which "
        "are dated so that it ends them when DynamoDB would."),
    ROW(STRING, dynamodb_endpoint, NULL, "URL",
        "Of dynamodb://TABLE: who has the table, http://HOST:PORT or https://HOST; by default AWS, "
        "in the region."),
    ROW(STRING, region, NULL, "NAME",
        "Of dynamodb://TABLE: the region; by default AWS_REGION, AWS_DEFAULT_REGION or that of the "
        "profile. Credentials are those of AWS's variables and files."),
    {.member = "segments",
     .kind = OPTION_INTEGER,
     .offset = offsetof(struct import_options, segments),
     .preset = "8",
     .least = 1,
     .most = DYNAMO_SEGMENTS_MOST,
     .unit = "N",
     .sentence = "Of dynamodb://TABLE: parts of the table that are read at a time."},
    ROW(BOOLEAN, consistent_read, "false", "",
        "Of dynamodb://TABLE: reads are strongly consistent, and cost twice as much."),
    ROW(ENUM, follow, "none", "none|caught-up|forever",
        "Of dynamodb://TABLE: applies what changes in it from the beginning of the import on, by "
        "its stream: until nothing more comes, or until SIGINT or SIGTERM."),
    TRANSFER_OPTION_ROWS(struct import_options, transfer),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle import dynamodb SOURCE|dynamodb://TABLE"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

#define REFUSE(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

static bool is_live(const struct import_options *options)
{
    return strncmp(options->source, LIVE, strlen(LIVE)) == 0;
}

static status check_layout(const struct import_options *options)
{
    if (options->partition_key == NULL && !is_live(options))
        return REFUSE("--partition-key is missing");
    if (options->partition_key == NULL && options->sort_key != NULL)
        return REFUSE("--sort-key needs --partition-key; without both the table's own keys count");
    if (options->lossless && options->compat != COMPAT_NONE)
        return REFUSE("--lossless and --compat exclude each other");
    if (options->compat == COMPAT_GOOGLE && options->sort_key != NULL)
        return REFUSE("Google's utility knows no sort keys: leave out --compat or --sort-key");
    bool has_lists = options->counters != NULL || options->families != NULL;
    if (has_lists && (options->lossless || options->compat != COMPAT_NONE))
        return REFUSE("--counters and --families need neither --lossless nor --compat");
    if (options->ttl_family == NULL)
        return status_ok();
    if (options->compat != COMPAT_NONE)
        return REFUSE("Google's utility has one family: leave out --compat or --ttl-family");
    return options->ttl_attribute != NULL ? status_ok()
                                          : REFUSE("--ttl-family needs --ttl-attribute");
}

/* With a mapping the other options have nothing to say. */
static status check_mapping(const struct import_options *o)
{
    bool is_alone = o->partition_key == NULL && o->sort_key == NULL && o->family == NULL &&
                    o->timestamp == NULL && o->counters == NULL && o->families == NULL &&
                    o->ttl_attribute == NULL && o->ttl_family == NULL && o->salts == 0 &&
                    o->compat == COMPAT_NONE && !o->lossless && !o->ordered_numbers &&
                    strcmp(o->delimiter, DELIMITER) == 0;
    return is_alone ? status_ok()
                    : REFUSE("--mapping says how items become rows: leave out the other options "
                             "that do");
}

static status check_live(const struct import_options *options)
{
    if (options->source[strlen(LIVE)] == '\0')
        return REFUSE(LIVE " is followed by a table's name");
    if (options->transfer.dry_run && options->follow != LIVE_FOLLOW_NONE)
        return REFUSE("--dry-run and --follow exclude each other");
    return status_ok();
}

static status check_files(const struct import_options *options)
{
    bool is_plain = options->dynamodb_endpoint == NULL && options->region == NULL &&
                    !options->consistent_read && options->follow == LIVE_FOLLOW_NONE;
    if (!is_plain)
        return REFUSE("--dynamodb-endpoint, --region, --consistent-read and --follow are of a "
                      "source " LIVE "TABLE");
    bool reads_again = strcmp(options->source, "-") == 0 && options->transfer.verify == VERIFY_FULL;
    return reads_again ? REFUSE("--verify full reads the source twice, which - cannot be")
                       : status_ok();
}

static status check(const struct import_options *options)
{
    if (options->table == NULL)
        return REFUSE("--table is missing");
    TRY(is_live(options) ? check_live(options) : check_files(options));
    return options->mapping != NULL ? check_mapping(options) : check_layout(options);
}

static status read_options(const char *const *arguments, struct import_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct import_options){0};
    TRY(command_need_words(arguments, 1,
                           "the source comes first: a file, a directory, or " LIVE "TABLE"));
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    out->source = arguments[0];
    TRY(check(out));
    return target_options_resolve(&table, origins, &out->target);
}

/* --- what they ask for --- */

/* How items become rows. */
struct import_plan {
    struct item_layout layout;
    struct item_mapping mapping; /* of the layout, if it has one */
    uint64_t mapping_hash;       /* of its file */
};

static status split_names(const char *list, struct arena *arena, struct item_names *out)
{
    *out = (struct item_names){0};
    if (list == NULL)
        return status_ok();
    size_t most = 1;
    for (const char *at = list; *at != '\0'; at++)
        most += *at == ',';
    const char **names = arena_alloc(arena, most * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    out->names = names;
    while (*list != '\0') {
        size_t size = strcspn(list, ",");
        names[out->count] = arena_string(arena, bytes_make(list, size));
        if (names[out->count] == NULL)
            return status_out_of_memory();
        out->count += size > 0;
        list += size + (list[size] == ',');
    }
    return status_ok();
}

/* "expiring:30d" */
static status split_ttl_family(const char *text, struct arena *arena, struct item_ttl *out)
{
    if (text == NULL)
        return status_ok();
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text)
        return REFUSE("--ttl-family is NAME:AGE, as in expiring:30d");
    out->family = arena_string(arena, bytes_make(text, (size_t)(colon - text)));
    if (out->family == NULL)
        return status_out_of_memory();
    return move_age_parse(colon + 1, &out->age_us);
}

static status make_layout(const struct import_options *options, struct arena *arena,
                          struct item_layout *out)
{
    bool is_google = options->compat == COMPAT_GOOGLE;
    *out = (struct item_layout){
        .form = is_google           ? ITEM_AS_GOOGLE
                : options->lossless ? ITEM_LOSSLESS
                                    : ITEM_AS_COLUMNS,
        .partition_key = options->partition_key,
        .sort_key = options->sort_key,
        .delimiter = options->delimiter,
        .orders_numbers = options->ordered_numbers,
        .salts = (unsigned)options->salts,
        .family = options->family != NULL ? options->family
                  : is_google             ? "cf1"
                                          : "item",
        .timestamp = options->timestamp,
        .ttl.attribute = options->ttl_attribute,
    };
    TRY(split_ttl_family(options->ttl_family, arena, &out->ttl));
    TRY(split_names(options->counters, arena, &out->counters));
    return split_names(options->families, arena, &out->families);
}

static status read_mapping(const char *path, struct arena *arena, struct import_plan *out)
{
    struct buffer text = {0};
    TRY(file_read(path, MAPPING_MOST, 0, &text));
    out->mapping_hash = bytes_hash(buffer_bytes(&text));
    status s = item_mapping_parse(path, buffer_bytes(&text), arena, &out->mapping);
    buffer_free(&text);
    out->layout = (struct item_layout){.mapping = &out->mapping};
    return s;
}

static const char *form_name(const struct import_options *options)
{
    return options->compat == COMPAT_GOOGLE ? "google" : options->lossless ? "lossless" : "columns";
}

static const char *or_nothing(const char *text)
{
    return text == NULL ? "" : text;
}

/* The identity of an import: a checkpoint of the same one may be gone on with. */
static status name_identity(const struct import_options *o, const struct import_plan *plan,
                            struct buffer *out)
{
    const struct target_options *target = &o->target;
    buffer_append_format(out, "%s to %s projects/%s/instances/%s/tables/%s as ", o->source,
                         target->server.address, target->project, target->instance, o->table);
    if (o->mapping != NULL)
        buffer_append_format(out, "%s (%016" PRIx64 ")", o->mapping, plan->mapping_hash);
    else
        buffer_append_format(out, "%s of %s, %s; %s %s %s %s %s %s %s %" PRIu64 "%s", form_name(o),
                             or_nothing(o->partition_key), or_nothing(o->sort_key), o->delimiter,
                             or_nothing(o->family), or_nothing(o->timestamp),
                             or_nothing(o->counters), or_nothing(o->families),
                             or_nothing(o->ttl_attribute), or_nothing(o->ttl_family), o->salts,
                             o->ordered_numbers ? " ordered" : "");
    if (is_live(o))
        buffer_append_format(out, "; %s %s %" PRIu64 "%s", or_nothing(o->dynamodb_endpoint),
                             or_nothing(o->region), o->segments,
                             o->follow == LIVE_FOLLOW_NONE ? "" : " followed");
    buffer_append_byte(out, '\0');
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- the import --- */

static status find_families(const struct import_plan *plan, struct arena *arena,
                            struct import_target *out)
{
    const struct item_layout *layout = &plan->layout;
    if (layout->mapping != NULL) {
        out->families = plan->mapping.families;
        out->family_count = plan->mapping.family_count;
        return status_ok();
    }
    const uint32_t versions = layout->form == ITEM_AS_GOOGLE ? 0 : 1;
    struct move_family *families =
        arena_alloc(arena, (layout->families.count + 2) * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    out->families = families;
    families[out->family_count++] =
        (struct move_family){.name = layout->family, .versions = versions};
    if (layout->ttl.family != NULL)
        families[out->family_count++] = (struct move_family){
            .name = layout->ttl.family, .versions = versions, .age_us = layout->ttl.age_us};
    for (size_t i = 0; i < layout->families.count; i++)
        families[out->family_count++] =
            (struct move_family){.name = layout->families.names[i], .versions = versions};
    return status_ok();
}

static status make_plan(const struct import_options *options, struct arena *arena,
                        struct import_plan *out)
{
    *out = (struct import_plan){.mapping_hash = 0};
    return options->mapping != NULL ? read_mapping(options->mapping, arena, out)
                                    : make_layout(options, arena, &out->layout);
}

static status import_files(const struct import_options *options, const struct import_plan *plan,
                           const struct import_target *target, bool *is_perfect)
{
    struct dynamo_source *source;
    TRY(dynamo_source_create(options->source, &plan->layout, &source));
    const struct transfer_source items = dynamo_source_interface(source);
    status s = import_run(&options->transfer, target, &items, is_perfect);
    dynamo_source_destroy(source);
    return s;
}

/* Rows have the table's own keys, if no others are asked for. */
static status run_live(const struct import_options *options, struct import_plan *plan,
                       struct import_target *target, struct live_source *source, bool *is_perfect)
{
    if (plan->layout.mapping == NULL && plan->layout.partition_key == NULL) {
        plan->layout.partition_key = live_source_table(source)->partition_key;
        plan->layout.sort_key = live_source_table(source)->sort_key;
    }
    if (plan->layout.form == ITEM_AS_GOOGLE && plan->layout.sort_key != NULL)
        return REFUSE("Google's utility knows no sort keys: name the --partition-key alone");
    target->loop = live_source_loop(source);
    TRY(live_source_begin(source, &plan->layout));
    const struct transfer_source items = live_source_interface(source);
    return import_run(&options->transfer, target, &items, is_perfect);
}

static status import_live(const struct import_options *options, struct import_plan *plan,
                          struct import_target *target, bool *is_perfect)
{
    const struct live_source_options live = {.place = options->source,
                                             .table = options->source + strlen(LIVE),
                                             .endpoint = options->dynamodb_endpoint,
                                             .region = options->region,
                                             .segments = (unsigned)options->segments,
                                             .is_consistent = options->consistent_read,
                                             .follow = (enum live_follow)options->follow};
    struct live_source *source;
    TRY(live_source_create(&live, &source));
    status s = run_live(options, plan, target, source, is_perfect);
    live_source_destroy(source);
    return s;
}

static status run(const struct import_options *options, struct arena *arena,
                  struct buffer *identity, bool *is_perfect)
{
    struct import_plan plan;
    struct import_target target = {.server = &options->target, .table_id = options->table};
    TRY(make_plan(options, arena, &plan));
    TRY(find_families(&plan, arena, &target));
    TRY(name_identity(options, &plan, identity));
    target.identity = (const char *)identity->data;
    return is_live(options) ? import_live(options, &plan, &target, is_perfect)
                            : import_files(options, &plan, &target, is_perfect);
}

int import_dynamodb_command(const char *const *arguments)
{
    struct import_options options;
    struct buffer identity = {0};
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("import", s);
    struct arena *arena = arena_create(SETUP_LIMIT);
    s = arena == NULL ? status_out_of_memory() : run(&options, arena, &identity, &is_perfect);
    arena_destroy(arena);
    buffer_free(&identity);
    return command_end("import", s, is_perfect);
}
