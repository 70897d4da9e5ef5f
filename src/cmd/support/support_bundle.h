/* `trestle support-bundle`: what somebody who helps needs to know of a server, in one archive. */
#ifndef TRESTLE_CMD_SUPPORT_SUPPORT_BUNDLE_H
#define TRESTLE_CMD_SUPPORT_SUPPORT_BUNDLE_H

/* Returns the exit status: 0 if there is an archive, whatever could not be found out for it. */
int support_bundle_command(const char *const *arguments);

#endif
