#include "braid/explore/priced_memory.h"

#include "braid/explore/axis_reader.h"

namespace braid {

PricedMemory read_priced_memory(const std::string& name, const Value& value) {
  value.expect_only({"capacity", "bandwidth", "price", "power"});
  return {name, value["capacity"].as_positive_quantity(Unit::bytes),
          value["bandwidth"].as_positive_quantity(Unit::bytes_per_s),
          read_rate_price(value["price"], Unit::usd), read_rate_price(value["power"], Unit::watts)};
}

}  // namespace braid
