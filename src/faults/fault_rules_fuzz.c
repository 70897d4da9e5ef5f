/* Fuzzer: rules of --inject. What is read lies within its bounds, and is read again from what is
 * written of it, to the same text. */
#include "base/testing/fuzzing.h"
#include "faults/fault_rules.h"

static void check_rule(const struct fault_rule *rule)
{
    CHECK(rule->which.size > 0);
    CHECK(rule->rate > 0 && rule->rate <= FAULT_RATE_ALWAYS);
    CHECK(rule->delay_least_us >= 0 && rule->delay_least_us <= rule->delay_most_us);
    CHECK(rule->delay_most_us <= FAULT_DELAY_MOST_US);
    CHECK(rule->delay_most_us > 0 || rule->code != STATUS_OK);
    CHECK(rule->after == 0 || rule->code != STATUS_OK);
    bool is_any = rule->which.data[rule->which.size - 1] == '*';
    CHECK(is_any || !fault_rule_names(rule, "a.Service", "with white space"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fault_rules rules, again;
    struct buffer text = {0}, text_again = {0};
    status s = fault_rules_parse(bytes_make(data, size), &rules);
    if (!status_is_ok(s)) {
        CHECK(s.code == STATUS_INVALID_ARGUMENT && status_message(s)[0] != '\0');
        status_free(s);
        return 0;
    }
    CHECK(rules.count > 0 && rules.count <= FAULT_RULES_MOST);
    for (size_t i = 0; i < rules.count; i++)
        check_rule(&rules.list[i]);
    fault_rules_write(&rules, &text);
    CHECK(status_is_ok(fault_rules_parse(buffer_bytes(&text), &again)));
    fault_rules_write(&again, &text_again);
    CHECK(bytes_equal(buffer_bytes(&text), buffer_bytes(&text_again)));
    buffer_free(&text);
    buffer_free(&text_again);
    return 0;
}
