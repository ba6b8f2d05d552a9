/* Only the header, twice, and before anything else: it brings what it needs and guards itself. */
#include "kelp.h"
#include "kelp.h"

int main(void) {
  return kelp_abi_version() == KELP_ABI_VERSION ? 0 : 1;
}
