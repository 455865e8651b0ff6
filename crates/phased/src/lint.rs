//! What every plan must satisfy (design.md section 2, "Plan lint").
