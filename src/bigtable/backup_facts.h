/* Backups between what cluster/backup/backup.h keeps and the API's messages: checked, completed,
 * shown. */
#ifndef TRESTLE_BIGTABLE_BACKUP_FACTS_H
#define TRESTLE_BIGTABLE_BACKUP_FACTS_H

#include "bigtable/resource_call.h"
#include "cluster/backup/backup.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "wire/timestamps.h"

/* The services' record of a backup. */
struct backup_facts {
    BtAdmin__Backup *backup;
    const char *operation; /* that made it */
    bool is_automated;     /* made by its table's policy */
};

/* Encodes facts as a backup keeps them: without what its manifest and its name say. */
status backup_facts_encode(const struct backup_facts *facts, struct buffer *out);
/* Encodes facts as the operation keeps them that is to make the backup. */
status backup_facts_encode_whole(const struct backup_facts *facts, struct buffer *out);
status backup_facts_decode(bytes facts, struct arena *arena, struct backup_facts *out);

/* The facts of a backup, whose message is whole: as clients see it. */
status backup_facts_of(const struct backup_info *info, struct arena *arena,
                       struct backup_facts *out);

/* The same for one that is there. NOT_FOUND. */
status find_backup(struct backups *backups, const char *name, struct arena *arena,
                   struct backup_facts *out);

/* Replaces what is kept of a backup that is ready. In an edit, so that it is one at a time. */
status put_backup_facts(const struct bigtable *bigtable, const struct backup_facts *facts);

/* Deletes a backup that is ready, with its policy. */
status remove_backup(struct bigtable *bigtable, const char *name, struct arena *arena);

status backup_info_message(const BtAdmin__Backup *backup, struct arena *arena,
                           BtAdmin__BackupInfo **out);

status check_backup_name(const char *name);
status check_cluster_name(const char *name);

/* Before an instance or a cluster is deleted: FAILED_PRECONDITION while it has backups. */
status check_no_backups(struct backups *backups, struct arena *arena, const char *label,
                        const char *name);

/* --- times --- */

enum { HOUR_SECONDS = 3600, DAY_SECONDS = 24 * HOUR_SECONDS };

/* How long backups may be kept. */
struct backup_terms {
    int64_t begun_us;
    bool is_copy;
    bool is_enterprise_plus; /* the edition of its instance */
};

/* Whether its times are as the API wants them. INVALID_ARGUMENT. */
status check_backup_expiry(const struct backup_terms *terms, const BtAdmin__Backup *backup);
status check_backup_cooling(const struct backup_terms *terms, const BtAdmin__Backup *backup);

/* The edition of a backup's instance; that may be on another machine, and has then the usual one.
 */
status find_edition(const struct edit *edit, struct arena *arena, const char *backup,
                    bool *is_enterprise_plus);

#endif
