/* See fault_rules.h. */
#include "faults/fault_rules.h"

#include "base/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

enum { WORD_MOST = 64, SHOWN_MOST = 80, RATE_DIGITS = 6 };

/* --- pieces of text --- */

static bytes trim(bytes text)
{
    while (text.size > 0 && isspace(text.data[0]))
        text = bytes_from(text, 1);
    while (text.size > 0 && isspace(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Takes what stands before the separator, or all; false if nothing is left to be taken. */
static bool take_part(bytes *rest, char separator, bytes *part)
{
    if (rest->data == NULL)
        return false;
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, separator, rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    *part = trim(bytes_make(rest->data, size));
    *rest = end == NULL ? bytes_make(NULL, 0) : bytes_from(*rest, size + 1);
    return true;
}

/* Splits "name=value"; false without the sign. */
static bool split_at(bytes text, char sign, bytes *name, bytes *value)
{
    *value = text;
    return take_part(value, sign, name) && value->data != NULL;
}

static status refuse(const char *what, bytes text)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s \"%.*s\"", what,
                       text.size > SHOWN_MOST ? SHOWN_MOST : (int)text.size,
                       text.size == 0 ? "" : (const char *)text.data);
}

/* A short text with its NUL; false if it is too long, or has one within. */
static bool copy_word(bytes text, char word[WORD_MOST])
{
    if (text.size >= WORD_MOST || (text.size > 0 && memchr(text.data, 0, text.size) != NULL))
        return false;
    if (text.size > 0)
        memcpy(word, text.data, text.size);
    word[text.size] = '\0';
    return true;
}

static bool parse_number(bytes text, uint64_t most, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (!isdigit(text.data[i]) || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(text.data[i] - '0'), out))
            return false;
    }
    return text.size > 0 && *out <= most;
}

/* --- what happens --- */

static bool parse_time(bytes text, int64_t *out)
{
    char word[WORD_MOST];
    return copy_word(trim(text), word) && options_parse_duration(word, out) &&
           *out <= FAULT_DELAY_MOST_US;
}

static status parse_delay(bytes value, struct fault_rule *rule)
{
    const uint8_t *dots = value.size == 0 ? NULL : memmem(value.data, value.size, "..", 2);
    bytes least = value, most = value;
    if (dots != NULL) {
        least.size = (size_t)(dots - value.data);
        most = bytes_from(value, least.size + 2);
    }
    if (!parse_time(least, &rule->delay_least_us) || !parse_time(most, &rule->delay_most_us) ||
        rule->delay_least_us > rule->delay_most_us || rule->delay_most_us == 0)
        return refuse("a delay is a time such as 50ms, or 5ms..20ms, at most 60s, not", value);
    return status_ok();
}

static status parse_error(bytes value, struct fault_rule *rule)
{
    for (int code = STATUS_CANCELLED; code <= STATUS_UNAUTHENTICATED; code++) {
        if (!bytes_equal(value, bytes_of(status_code_name((enum status_code)code))))
            continue;
        rule->code = (enum status_code)code;
        return status_ok();
    }
    return refuse("an error is a code of gRPC's such as UNAVAILABLE, not", value);
}

static status parse_after(bytes value, struct fault_rule *rule)
{
    uint64_t number;
    if (!parse_number(value, FAULT_AFTER_MOST, &number) || number == 0)
        return refuse("after is a number of messages from 1 to 1000000, not", value);
    rule->after = (uint32_t)number;
    return status_ok();
}

/* Digits after the point, as millionths. */
static bool parse_fraction(bytes digits, uint64_t *out)
{
    if (digits.size > RATE_DIGITS || !parse_number(digits, FAULT_RATE_ALWAYS, out))
        return false;
    for (size_t i = digits.size; i < RATE_DIGITS; i++)
        *out *= 10;
    return true;
}

static status parse_rate(bytes value, struct fault_rule *rule)
{
    bytes whole, digits;
    uint64_t ones, millionths = 0;
    bool has_point = split_at(value, '.', &whole, &digits);
    if (!has_point)
        whole = value;
    bool is_right =
        parse_number(whole, 1, &ones) && (!has_point || parse_fraction(digits, &millionths));
    uint64_t rate = is_right ? ones * FAULT_RATE_ALWAYS + millionths : 0;
    if (rate == 0 || rate > FAULT_RATE_ALWAYS)
        return refuse("a rate is a share of the calls, above 0 and at most 1, such as 0.1, not",
                      value);
    rule->rate = (uint32_t)rate;
    return status_ok();
}

/* Ids of tables have letters, digits, and these. */
static status parse_table(bytes value, struct fault_rule *rule)
{
    bool is_right = value.size > 0;
    for (size_t i = 0; i < value.size; i++)
        is_right &= isalnum(value.data[i]) || strchr("-._", value.data[i]) != NULL;
    if (!is_right || memchr(value.data, 0, value.size) != NULL)
        return refuse("a table is its id, such as orders, not", value);
    rule->table = value;
    return status_ok();
}

static const struct {
    const char *name;
    status (*parse)(bytes value, struct fault_rule *rule);
} actions[] = {
    {"delay", parse_delay}, {"error", parse_error}, {"after", parse_after},
    {"rate", parse_rate},   {"table", parse_table},
};

static status parse_action(bytes text, struct fault_rule *rule, unsigned *given)
{
    bytes name, value;
    if (!split_at(text, '=', &name, &value))
        return refuse("what happens is said as delay=50ms and the like, not", text);
    for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (!bytes_equal(name, bytes_of(actions[i].name)))
            continue;
        if ((*given & 1u << i) != 0)
            return refuse("a rule says twice", name);
        *given |= 1u << i;
        return actions[i].parse(trim(value), rule);
    }
    return refuse("a rule says delay, error, after, rate or table, not", name);
}

/* --- items --- */

/* Letters, digits, and what stands between them in names of services. */
static bool is_which(bytes text)
{
    bool is_right = text.size > 0;
    for (size_t i = 0; i < text.size; i++)
        is_right &=
            text.data[i] != 0 && (isalnum(text.data[i]) || strchr("._/*", text.data[i]) != NULL);
    return is_right;
}

static status parse_rule(bytes text, struct fault_rule *rule)
{
    bytes rest, action;
    unsigned given = 0;
    *rule = (struct fault_rule){.rate = FAULT_RATE_ALWAYS};
    if (!split_at(text, ':', &rule->which, &rest))
        return refuse("a rule is a method, a colon, and what happens to its calls, not", text);
    if (!is_which(rule->which))
        return refuse("no method has the name", rule->which);
    while (take_part(&rest, ',', &action))
        TRY(parse_action(action, rule, &given));
    if (rule->code == STATUS_OK && rule->delay_most_us == 0)
        return refuse("neither a delay nor an error is said in", text);
    if (rule->code == STATUS_OK && rule->after > 0)
        return refuse("after is for a rule with an error, unlike", text);
    return status_ok();
}

static status parse_seed(bytes value, struct fault_rules *out)
{
    if (out->has_seed)
        return refuse("there are two seeds, the second of them", value);
    out->has_seed = true;
    if (!parse_number(value, UINT64_MAX, &out->seed))
        return refuse("a seed is a number, not", value);
    return status_ok();
}

static status parse_item(bytes text, struct fault_rules *out)
{
    bytes name, value;
    if (split_at(text, '=', &name, &value) && bytes_equal(name, bytes_of("seed")))
        return parse_seed(trim(value), out);
    if (out->count == FAULT_RULES_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "there are more than %d rules",
                           FAULT_RULES_MOST);
    return parse_rule(text, &out->list[out->count++]);
}

status fault_rules_parse(bytes text, struct fault_rules *out)
{
    bytes item;
    *out = (struct fault_rules){.count = 0};
    while (take_part(&text, ';', &item))
        if (item.size > 0)
            TRY(parse_item(item, out));
    if (out->count == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "there is no rule");
    return status_ok();
}

/* --- the other way --- */

static void write_rate(uint32_t rate, struct buffer *out)
{
    char digits[RATE_DIGITS + 1];
    snprintf(digits, sizeof digits, "%06u", rate % FAULT_RATE_ALWAYS);
    for (size_t i = RATE_DIGITS; i > 0 && digits[i - 1] == '0'; i--)
        digits[i - 1] = '\0';
    buffer_append_format(out, ", rate=0.%s", digits);
}

static void write_rule(const struct fault_rule *rule, struct buffer *out)
{
    const char *between = "";
    buffer_append_bytes(out, rule->which);
    buffer_append_format(out, ": ");
    if (rule->delay_most_us > 0) {
        buffer_append_format(out, "delay=%" PRId64 "us", rule->delay_least_us);
        if (rule->delay_most_us > rule->delay_least_us)
            buffer_append_format(out, "..%" PRId64 "us", rule->delay_most_us);
        between = ", ";
    }
    if (rule->code != STATUS_OK)
        buffer_append_format(out, "%serror=%s", between, status_code_name(rule->code));
    if (rule->after > 0)
        buffer_append_format(out, ", after=%u", rule->after);
    if (rule->rate < FAULT_RATE_ALWAYS)
        write_rate(rule->rate, out);
    if (rule->table.size == 0)
        return;
    buffer_append_format(out, ", table=");
    buffer_append_bytes(out, rule->table);
}

void fault_rules_write(const struct fault_rules *rules, struct buffer *out)
{
    if (rules->has_seed)
        buffer_append_format(out, "seed=%" PRIu64 "; ", rules->seed);
    for (size_t i = 0; i < rules->count; i++) {
        if (i > 0)
            buffer_append_format(out, "; ");
        write_rule(&rules->list[i], out);
    }
}

/* --- methods --- */

bool fault_rule_names(const struct fault_rule *rule, const char *service, const char *method)
{
    bytes which = rule->which;
    const uint8_t *slash = memchr(which.data, '/', which.size);
    if (slash != NULL) {
        size_t size = (size_t)(slash - which.data);
        if (!bytes_equal(bytes_make(which.data, size), bytes_of(service)))
            return false;
        which = bytes_from(which, size + 1);
    }
    return bytes_equal(which, bytes_of("*")) || bytes_equal(which, bytes_of(method));
}
