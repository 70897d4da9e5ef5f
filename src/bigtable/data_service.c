/* google.bigtable.v2.Bigtable. Methods that are not in the table answer UNIMPLEMENTED. */
#include "bigtable/data_methods.h"
#include "bigtable/services.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct grpc_service bigtable_data_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"ReadRows", GRPC_SERVER_STREAMING, read_rows},
        {"SampleRowKeys", GRPC_SERVER_STREAMING, sample_row_keys},
        {"MutateRow", GRPC_UNARY, mutate_row},
        {"MutateRows", GRPC_SERVER_STREAMING, mutate_rows},
        {"CheckAndMutateRow", GRPC_UNARY, check_and_mutate_row},
        {"ReadModifyWriteRow", GRPC_UNARY, read_modify_write_row},
        {"PingAndWarm", GRPC_UNARY, ping_and_warm},
        {"PrepareQuery", GRPC_UNARY, prepare_query},
        {"ExecuteQuery", GRPC_SERVER_STREAMING, execute_query},
        {"GetClientConfiguration", GRPC_UNARY, get_client_configuration},
        {"GenerateInitialChangeStreamPartitions", GRPC_SERVER_STREAMING,
         generate_initial_change_stream_partitions},
        {"ReadChangeStream", GRPC_SERVER_STREAMING, read_change_stream},
    };
    return (struct grpc_service){.name = "google.bigtable.v2.Bigtable",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable,
                                 .is_data = true,
                                 .rest = &bt__bigtable__descriptor};
}
