/* `trestle support-bundle`: the facts about a server that its helpers need, in one archive. */
#ifndef TRESTLE_CMD_SUPPORT_SUPPORT_BUNDLE_H
#define TRESTLE_CMD_SUPPORT_SUPPORT_BUNDLE_H

/* Returns the exit status: 0 if there is an archive, whatever could not be found out for it. */
int support_bundle_command(const char *const *arguments);

#endif
