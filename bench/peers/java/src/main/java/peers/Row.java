package peers;

record Row(String name, String unit) {}
