int main(void)
{
    printf("hello\n");
    sleep(1);
}
