const char *const says = "A thing of %d bytes "
                         "is too large";
