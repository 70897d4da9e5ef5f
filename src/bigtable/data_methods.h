/* The methods of google.bigtable.v2.Bigtable, one file for each or each pair. The service's table
 * is in data_service.c. */
#ifndef TRESTLE_BIGTABLE_DATA_METHODS_H
#define TRESTLE_BIGTABLE_DATA_METHODS_H

#include "wire/grpc.h"

grpc_handler read_rows;                                 /* read_rows.c */
grpc_handler sample_row_keys;                           /* sample_row_keys.c */
grpc_handler mutate_row;                                /* mutate_row.c */
grpc_handler mutate_rows;                               /* mutate_rows.c */
grpc_handler check_and_mutate_row;                      /* check_and_mutate.c */
grpc_handler read_modify_write_row;                     /* read_modify_write.c */
grpc_handler ping_and_warm;                             /* ping.c */
grpc_handler get_client_configuration;                  /* ping.c */
grpc_handler prepare_query;                             /* prepare_query.c */
grpc_handler execute_query;                             /* execute_query.c */
grpc_handler read_change_stream;                        /* read_change_stream.c */
grpc_handler generate_initial_change_stream_partitions; /* initial_partitions.c */

#endif
