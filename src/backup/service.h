/* trestle.backup.v1.WholeBackups: see whole_backups.proto. Methods run on pool threads. */
#ifndef TRESTLE_BACKUP_SERVICE_H
#define TRESTLE_BACKUP_SERVICE_H

#include "backup/runner.h"
#include "bigtable/services.h"

/* The context of the service; all of it outlives it. */
struct backup_service {
    struct bigtable *bigtable;
    struct whole_runner *runner;
    struct audit *audit; /* NULL: none */
};

struct grpc_service backup_grpc_service(struct backup_service *service);

#endif
