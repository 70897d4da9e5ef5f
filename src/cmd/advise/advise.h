/* `trestle advise`: what is wrong with a table, or a database of Datastore, by the best practices
 * for its keys and columns. The server looks itself where it is a Trestle; elsewhere the command
 * reads a sample.
 *
 *     trestle advise TABLE [--endpoint ADDR:PORT] [--format text|json|sarif] [--fail-on SEVERITY] …
 *     trestle advise --database NAME [--project NAME] …
 *     trestle advise --all [--instance NAME] …
 *     trestle advise --rules [--format text|json|markdown] */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_H
#define TRESTLE_CMD_ADVISE_ADVISE_H

/* Returns the exit status: 0 if nothing was found that is as severe as --fail-on; 1 if something
 * was, or if the table could not be looked at; 2 for options that make no sense; 3 if nothing was
 * found, but too little was seen. */
int advise_command(const char *const *arguments);

#endif
