/* Linked against all that segue is linked against; does nothing: the floor of its start-up. */
int main(void) {
  return 0;
}
