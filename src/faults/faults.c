/* See faults.h. */
#include "faults/faults.h"

#include "access/rules.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define WORDS "injected fault: this server was started with --inject"

/* The faults that a method may suffer. */
struct target {
    uint32_t rules;   /* bit 1 << i for the i-th */
    struct rule rule; /* finds the name in a request; no rows: there is none */
};

struct faults {
    struct fault_rules rules;
    struct metrics *metrics;
    struct target *targets; /* by method_index */
    _Atomic(uint64_t) draws[FAULT_RULES_MOST];
};

static_assert(FAULT_RULES_MOST <= 32, "a set of rules is 32 bits");

/* --- life --- */

/* Whether the service is for looks at the server. */
static bool is_left_alone(const char *service)
{
    return strncmp(service, "grpc.", strlen("grpc.")) == 0 ||
           strncmp(service, "trestle.", strlen("trestle.")) == 0;
}

/* A bit for each rule that is about the method. */
static uint32_t rules_about(const struct fault_rules *rules, const char *service,
                            const char *method)
{
    uint32_t about = 0;
    if (is_left_alone(service))
        return 0;
    for (size_t i = 0; i < rules->count; i++)
        if (fault_rule_names(&rules->list[i], service, method))
            about |= 1u << i;
    return about;
}

static status find_target(const struct fault_rules *rules, const char *service, const char *method,
                          struct target *out)
{
    out->rules = rules_about(rules, service, method);
    return out->rules == 0 ? status_ok() : rule_find(service, method, &out->rule);
}

/* `*used` are the rules that are about any method. */
static status find_targets(struct faults *faults, const struct grpc_service *const *services,
                           size_t service_count, uint32_t *used)
{
    struct target *target = faults->targets;
    for (size_t i = 0; i < service_count; i++) {
        for (size_t j = 0; j < services[i]->method_count; j++, target++) {
            TRY(find_target(&faults->rules, services[i]->name, services[i]->methods[j].name,
                            target));
            *used |= target->rules;
        }
    }
    return status_ok();
}

static status refuse_useless(const struct fault_rules *rules, uint32_t used)
{
    for (size_t i = 0; i < rules->count; i++) {
        bytes which = rules->list[i].which;
        if ((used & 1u << i) == 0)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "no method has the name \"%.*s\": it is one such as ReadRows, "
                               "google.bigtable.v2.Bigtable/ReadRows, or *",
                               (int)which.size, (const char *)which.data);
    }
    return status_ok();
}

/* A server with a method that access control has no row for does not start. */
status faults_check(const struct fault_rules *rules)
{
    uint32_t used = 0;
    for (size_t i = 0; i < requirement_count(); i++) {
        const struct requirement *row = requirement_at(i);
        used |= rules_about(rules, row->service, row->method);
    }
    return refuse_useless(rules, used);
}

static status prepare(struct faults *faults, const struct grpc_service *const *services,
                      size_t service_count)
{
    size_t count = 0;
    uint32_t used = 0;
    for (size_t i = 0; i < service_count; i++)
        count += services[i]->method_count;
    faults->targets = calloc(count + 1, sizeof *faults->targets);
    if (faults->targets == NULL)
        return status_out_of_memory();
    if (!faults->rules.has_seed && getrandom(&faults->rules.seed, sizeof faults->rules.seed, 0) < 0)
        return status_make(STATUS_UNAVAILABLE, "the system has no random numbers");
    faults->rules.has_seed = true;
    TRY(find_targets(faults, services, service_count, &used));
    return refuse_useless(&faults->rules, used);
}

status faults_create(const struct fault_rules *rules, const struct grpc_service *const *services,
                     size_t service_count, struct metrics *metrics, struct faults **out)
{
    *out = NULL;
    struct faults *faults = calloc(1, sizeof *faults);
    if (faults == NULL)
        return status_out_of_memory();
    faults->rules = *rules;
    faults->metrics = metrics;
    status s = prepare(faults, services, service_count);
    if (!status_is_ok(s)) {
        faults_destroy(faults);
        return s;
    }
    *out = faults;
    return s;
}

void faults_destroy(struct faults *faults)
{
    if (faults == NULL)
        return;
    free(faults->targets);
    free(faults);
}

void faults_write(const struct faults *faults, struct buffer *out)
{
    fault_rules_write(&faults->rules, out);
}

/* --- draws --- */

/* Sebastiano Vigna's finaliser of splitmix64: numbers that follow one another have nothing in
 * common afterwards. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

enum question { WHETHER, HOW_LONG };

/* From 0 to `end` - 1, evenly: what is left over of 2^64 is too little to be seen. */
static uint64_t pick(const struct faults *faults, size_t rule, uint64_t draw,
                     enum question question, uint64_t end)
{
    uint64_t place = mix(faults->rules.seed + 2 * rule + (uint64_t)question + 1);
    return mix(place + draw * 0x9e3779b97f4a7c15u) % end;
}

/* The id of the table that a name is of, or lies in. */
static bytes table_id(bytes name)
{
    static const char collection[] = "/tables/";
    const uint8_t *at =
        name.size == 0 ? NULL : memmem(name.data, name.size, collection, strlen(collection));
    if (at == NULL)
        return bytes_make(NULL, 0);
    bytes id = bytes_from(name, (size_t)(at - name.data) + strlen(collection));
    const uint8_t *end = id.size == 0 ? NULL : memchr(id.data, '/', id.size);
    return end == NULL ? id : bytes_make(id.data, (size_t)(end - id.data));
}

static bool is_about(const struct fault_rule *rule, const struct target *target, bytes request)
{
    if (rule->table.size == 0)
        return true;
    return target->rule.count > 0 &&
           bytes_equal(table_id(rule_name(&target->rule, request)), rule->table);
}

/* Whether the call is hit by the rule. */
static bool draw_one(struct faults *faults, size_t index, struct grpc_fault *fault)
{
    const struct fault_rule *rule = &faults->rules.list[index];
    uint64_t draw = atomic_fetch_add(&faults->draws[index], 1);
    if (pick(faults, index, draw, WHETHER, FAULT_RATE_ALWAYS) >= rule->rate)
        return false;
    uint64_t span = (uint64_t)(rule->delay_most_us - rule->delay_least_us) + 1;
    fault->delay_us += rule->delay_least_us + (int64_t)pick(faults, index, draw, HOW_LONG, span);
    if (fault->code == STATUS_OK && rule->code != STATUS_OK) {
        fault->code = rule->code;
        fault->after = rule->after;
        fault->words = WORDS;
    }
    return true;
}

struct grpc_fault faults_draw(struct faults *faults, size_t method_index, bytes request)
{
    struct grpc_fault fault = {.delay_us = 0};
    const struct target *target = &faults->targets[method_index];
    bool is_hit = false;
    for (size_t i = 0; i < faults->rules.count; i++)
        if ((target->rules & 1u << i) != 0 && is_about(&faults->rules.list[i], target, request))
            is_hit |= draw_one(faults, i, &fault);
    if (is_hit)
        metrics_add(faults->metrics, METRIC_injected_faults_total, 1);
    return fault;
}
