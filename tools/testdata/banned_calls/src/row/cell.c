/* strcpy(a, b) in a comment is fine, and so is "gets(" in a string. */
static void copy(char *to, const char *from)
{
    strcpy(to, from);
    printf("%s is not sprintf()\n", to);
    assert(to);
    list.gets(to);
    assert_true(my_atoi(to) == atoi(from));
}
