/* See table_names.h. */
#include "store/table_names.h"

#include "store/internal.h"

status keyspace_list_files(keyspace *keyspace, status (*visit)(void *context, const char *name),
                           void *context)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] {
        for (const auto &table : tables_of(keyspace))
            TRY(visit(context, table.name.c_str() + table.name.rfind('/') + 1));
        return status_ok();
    });
}
