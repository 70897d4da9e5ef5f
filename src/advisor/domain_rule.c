/* Keys that begin with the name of a host as people write it, its top-level domain last; or all
 * with the same one. */
#include "advisor/key_start.h"

#include <ctype.h>
#include <strings.h>

/* The usual ones. Those that are also endings of files (.sh, .py, .md, .pl, .rs) are not here. */
static const char *const top_level[] = {
    "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "dev", "app", "cloud",
    "co",  "uk",  "de",  "fr",  "es",  "it",  "nl",  "be",   "eu",  "ch", "at",  "se",  "no",
    "dk",  "fi",  "pt",  "cz",  "gr",  "ie",  "ru",  "ua",   "cn",  "jp", "kr",  "in",  "au",
    "nz",  "ca",  "us",  "mx",  "br",  "ar",  "cl",  "za",   "il",  "tr", "sg",  "hk",  "tw",
};

bool is_top_level_domain(bytes label)
{
    for (size_t i = 0; i < sizeof top_level / sizeof *top_level; i++)
        if (strlen(top_level[i]) == label.size &&
            strncasecmp(top_level[i], (const char *)label.data, label.size) == 0)
            return true;
    return false;
}

static size_t scheme_size(bytes key)
{
    static const char *const schemes[] = {"https://", "http://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (bytes_start_with(key, bytes_of(schemes[i])))
            return strlen(schemes[i]);
    return 0;
}

/* The name at the start of the key; empty if it is none, or reversed already. "@" behind it says
 * that it is the first half of an address. */
static bytes host_of(bytes key)
{
    size_t size = 0, dots = 0, first_dot = 0, last_dot = 0;
    const bytes none = bytes_make(NULL, 0);
    key = bytes_from(key, scheme_size(key));
    for (; size < key.size; size++) {
        uint8_t c = key.data[size];
        if (c == '.') {
            first_dot = dots++ == 0 ? size : first_dot;
            last_dot = size;
        } else if (!isalnum(c) && c != '-') {
            break;
        }
    }
    bool is_name = dots > 0 && first_dot > 0 && last_dot + 1 < size &&
                   (size == key.size || (key.data[size] != '@' && key.data[size] != '_'));
    if (!is_name || is_top_level_domain(bytes_make(key.data, first_dot)))
        return none;
    bytes last = bytes_make(key.data + last_dot + 1, size - last_dot - 1);
    return is_top_level_domain(last) ? bytes_make(key.data, size) : none;
}

/* com.example.www, and what the key has behind it; without "https://". */
static status reversed(struct advisor *advisor, bytes key, bytes *out)
{
    bytes host = host_of(key);
    struct buffer text = {0};
    size_t end = host.size;
    *out = bytes_make(NULL, 0);
    if (host.size == 0)
        return status_ok();
    for (size_t at = host.size; at-- > 0;) {
        if (host.data[at] != '.' && at > 0)
            continue;
        size_t start = at == 0 ? 0 : at + 1;
        buffer_append(&text, host.data + start, end - start);
        if (at > 0)
            buffer_append_byte(&text, '.');
        end = at;
    }
    buffer_append_bytes(&text, bytes_from(key, (size_t)(host.data - key.data) + host.size));
    return keep_text(advisor, &text, out);
}

/* The place at which the names begin: behind the last delimiter of what all keys begin with. */
static size_t start_of_names(const struct advice_observations *seen)
{
    size_t start = key_start_behind_common(seen);
    bytes first = seen->row_count == 0 ? bytes_make(NULL, 0) : seen->rows[0].key;
    while (start > 0 && start <= first.size && !is_one_of(first.data[start - 1], "#|~;, /:"))
        start--;
    return start;
}

static status reverse_behind(struct advisor *advisor, bytes key, size_t start, bytes *out)
{
    struct buffer text = {0};
    bytes better;
    TRY(reversed(advisor, bytes_from(key, start), &better));
    *out = better;
    if (start == 0 || better.size == 0)
        return status_ok();
    buffer_append(&text, key.data, start);
    buffer_append_bytes(&text, better);
    return keep_text(advisor, &text, out);
}

static status tell_names(struct advisor *advisor, size_t hosts, size_t start)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    TRY(advise(advisor, RULE_key_domain, &finding, "%zu of %zu sampled keys %s the name of a host.",
               hosts, seen->row_count, start == 0 ? "begin with" : "have, behind the same start,"));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(seen, i)->key, better;
        finding_add_key(finding, key);
        TRY(reverse_behind(advisor, key, start, &better));
        if (better.size > 0)
            finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status look_for_names(struct advisor *advisor, size_t start, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    size_t hosts = 0, changes = 0;
    bytes last = {0};
    for (size_t i = 0; i < seen->row_count; i++) {
        bytes host = host_of(bytes_from(seen->rows[i].key, start));
        hosts += host.size > 0;
        changes += host.size > 0 && !bytes_equal(host, last);
        last = host.size > 0 ? host : last;
    }
    *is_found = seen->row_count >= KEYS_LEAST && changes > 2 &&
                hosts * 100 >= seen->row_count * DOMAINS_PERCENT;
    return *is_found ? tell_names(advisor, hosts, start) : status_ok();
}

/* The name of a domain that all keys begin with, its top-level domain first or last, and something
 * behind it; empty: there is none. */
static bytes common_domain(const struct advice_observations *seen)
{
    bytes key = seen->row_count == 0 ? bytes_make(NULL, 0) : seen->rows[0].key;
    size_t common = key_start_behind_common(seen), size = 0, dots = 0, first = 0, last = 0;
    common = common < key.size ? common : key.size;
    for (; size < common && (isalnum(key.data[size]) || is_one_of(key.data[size], ".-")); size++)
        if (key.data[size] == '.') {
            first = dots++ == 0 ? size : first;
            last = size + 1;
        }
    bool is_name = dots > 0 && first > 0 && last < size && size < common &&
                   (is_top_level_domain(bytes_make(key.data, first)) ||
                    is_top_level_domain(bytes_make(key.data + last, size - last)));
    return is_name ? bytes_make(key.data, size) : bytes_make(NULL, 0);
}

static status look_for_one_domain(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    bytes domain = common_domain(seen);
    struct advice_finding *finding;
    if (domain.size == 0 || seen->row_count < KEYS_PREFIX_LEAST)
        return status_ok();
    TRY(advise(advisor, RULE_key_domain, &finding,
               "All %zu sampled keys begin with the same domain, %.*s.", seen->row_count,
               (int)domain.size, domain.data));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(seen, i)->key;
        finding_add_key(finding, key);
        if (key.size > domain.size + 1)
            finding_add_better(finding, key, bytes_from(key, domain.size + 1));
    }
    return status_ok();
}

status advise_on_domains(struct advisor *advisor)
{
    bool is_found;
    size_t start = start_of_names(advisor->seen);
    TRY(look_for_names(advisor, 0, &is_found));
    if (!is_found && start > 0)
        TRY(look_for_names(advisor, start, &is_found));
    return is_found ? status_ok() : look_for_one_domain(advisor);
}
