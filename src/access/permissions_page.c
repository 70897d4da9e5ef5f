/* docs/reference/permissions.md: see access_write_markdown. */
#include "access/access.h"
#include "access/rules.h"

static void write_rpcs(struct buffer *out)
{
    const char *service = "";
    for (size_t i = 0; i < requirement_count(); i++) {
        const struct requirement *row = requirement_at(i);
        if (strcmp(row->service, service) != 0)
            buffer_append_format(out,
                                 "\n## %s\n\n| method | the name in | is that of | needs |\n"
                                 "|---|---|---|---|\n",
                                 row->service);
        service = row->service;
        buffer_append_format(out, "| %s | `%s` | `%s` | %s", row->method, row->field,
                             kind_form(row->kind), permission_name(row->permission));
        if (row->when != NULL)
            buffer_append_format(out, ", if `%s` is set", row->when);
        buffer_append_format(out, " |\n");
    }
}

static void write_roles(struct buffer *out)
{
    buffer_append_format(out, "\n## Roles\n\n| role | who has it |\n|---|---|\n");
    for (size_t i = 0; role_name(i) != NULL; i++)
        buffer_append_format(out, "| `%s` | %s |\n", role_name(i), role_sentence(i));
    buffer_append_format(
        out, "\n## Permissions\n\n| permission | of its service's roles |\n|---|---|\n");
    for (unsigned p = 0; p < PERMISSION_COUNT; p++) {
        enum access_permission permission = (enum access_permission)p;
        const char *separator = "";
        buffer_append_format(out, "| %s | ", permission_name(permission));
        for (size_t i = 0; role_name(i) != NULL; i++) {
            const char *dot = strchr(role_name(i), '.'); /* of "roles/bigtable.user" */
            struct permission_set set;
            if (dot == NULL || !role_find(bytes_of(role_name(i)), &set) ||
                !permission_set_has(set, permission))
                continue;
            buffer_append_format(out, "%s%s", separator, dot + 1);
            separator = ", ";
        }
        buffer_append_format(out, " |\n");
    }
}

void access_write_markdown(struct buffer *out)
{
    buffer_append_format(
        out,
        "# What each RPC needs\n\n"
        "Written by `./dev docs` from `src/access/rpcs.def` and `src/access/permissions.def`:\n"
        "change it there.\n\n"
        "With `--auth on`, a call is refused with PERMISSION_DENIED unless the caller has every\n"
        "permission that the rows of the method demand on the resource that the request names:\n"
        "by a policy on that resource, on one that it lies in, on its project, or on everything.\n"
        "A row counts if its field is set. \"none\": whoever is known may call it. Health checks\n"
        "and reflection are open to everybody.\n"
        "[security.md](../operating/security.md) says how policies are made.\n");
    write_rpcs(out);
    write_roles(out);
}
