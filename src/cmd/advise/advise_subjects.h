/* The subjects that `trestle advise --all` looks at: names out of the server's lists. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_SUBJECTS_H
#define TRESTLE_CMD_ADVISE_ADVISE_SUBJECTS_H

#include "client/client_session.h"

struct advise_subject {
    const char *project;
    const char *instance; /* NULL: of a database */
    const char *table;    /* its id; NULL: of a database */
    const char *database; /* its id; NULL: of a table */
};

struct advise_subjects {
    struct buffer found; /* struct advise_subject, those of an instance together */
    struct arena *arena; /* of the names */
};

void advise_subjects_free(struct advise_subjects *subjects);
size_t advise_subjects_count(const struct advise_subjects *subjects);
const struct advise_subject *advise_subjects_at(const struct advise_subjects *subjects, size_t at);

/* The tables of the session's instance. Names point into the session's, too. */
status advise_list_instance(struct client_session *session, struct advise_subjects *out);

/* NOT_FOUND if there is no such instance; a server that tells nothing of instances is believed to
 * have it. */
status advise_check_instance(struct client_session *session, struct arena *arena);

/* Lists the tables of all instances, and all databases of Datastore, of all projects; of a server
 * that tells nothing of other projects, of the session's. */
status advise_list_server(struct client_session *session, struct advise_subjects *out);

#endif
