/* Policy files, and names of resources: what is read can be asked about, and each step from a name
 * to what it lies in is shorter and ends. */
#include "access/policy_file.h"

#include "access/resource.h"
#include "base/testing/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct policies policies = {0};
    bytes input = bytes_make(data, size);
    enum access_kind kind;
    status s = policy_file_parse(input, &policies);
    CHECK(status_is_ok(s) || policies.count == 0);
    struct permission_set known = policies_grant(&policies, bytes_of("user:a"), input);
    struct permission_set unknown = policies_grant(&policies, bytes_of(""), input);
    CHECK((unknown.words[0] & ~known.words[0]) == 0 && (unknown.words[1] & ~known.words[1]) == 0);
    if (resource_kind(input, &kind)) {
        bytes at = resource_root(input);
        size_t before = at.size + 1;
        while (at.size > 0 && at.size < before) {
            before = at.size;
            resource_parent(&at);
        }
        CHECK(at.size == 0);
    }
    status_free(s);
    policies_free(&policies);
    return 0;
}
